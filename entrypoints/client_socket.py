"""The first message to the socket of `herdbook serve`, from the client's side."""

import json
import os
import socket
from typing import Any

from herdbook.adapters.user_state import running_server
from herdbook.domain.agents.host_sessions import host_session
from herdbook.domain.errors import StoreUnavailable
from herdbook.entrypoints.context import AGENT, SESSION
from herdbook.entrypoints.rpc.errors import to_exception
from herdbook.entrypoints.rpc.messages import RpcError, encode

CONNECT, LINK = "serve.connect", "serve.link"
"""The methods that a connection can begin with: choose a folder, or ask for a link to the page."""
LONGEST = 1 << 16
SECONDS = 30.0


def open_folder(folder: str) -> socket.socket:
    """A connection to the server that runs, about a folder.

    Raises StoreUnavailable if none runs, and InvalidValue if it does not serve the folder.
    """
    found = running_server.find_server()
    if found is None:
        raise StoreUnavailable("herdbook serve", "it does not run; `herdbook serve` starts it")
    try:
        connection = connect(found.socket)
        try:
            exchange(connection, CONNECT, folder=folder, **acting_as())
        except BaseException:
            connection.close()
            raise
    except OSError as error:
        reason = f"its socket does not answer: {error}"
        raise StoreUnavailable(f"herdbook serve (process {found.pid})", reason) from error
    connection.settimeout(None)
    return connection


def acting_as() -> dict[str, str]:
    """Who acts in this process, as a server that it started would see it in the environment."""
    session = os.environ.get(SESSION) or host_session(os.environ)[0]
    known = {"agent": os.environ.get(AGENT), "session": session}
    return {name: value for name, value in known.items() if value}


def ask_first(path: str, method: str, **params: Any) -> Any:
    """Ask one thing and leave."""
    with connect(path) as connection:
        return exchange(connection, method, **params)


def connect(path: str) -> socket.socket:
    """A connection to the socket; raises OSError."""
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(SECONDS)
    try:
        connection.connect(path)
    except OSError:
        connection.close()
        raise
    return connection


def exchange(connection: socket.socket, method: str, **params: Any) -> Any:
    """Send the first message of a connection; returns its answer, or raises its error."""
    message = {"jsonrpc": "2.0", "id": 0, "method": method, "params": params}
    connection.sendall(encode(message) + b"\n")
    line = b""
    while not line.endswith(b"\n"):
        data = connection.recv(LONGEST)
        if not data:
            raise ConnectionResetError("it ended before it answered")
        line += data
    answer = json.loads(line)
    if "error" in answer:
        raise to_exception(RpcError.from_data(answer["error"]))
    return answer["result"]
