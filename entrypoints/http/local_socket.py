"""The Unix socket for programs of this account: `herdbook rpc` without starting a process.

Each connection begins with `serve.connect`, which names one of the served folders; from then on it
speaks as standard input and output of `herdbook rpc` do. The socket is for this account alone, by
its mode and by what the kernel says of the other side.
"""

import os
import socket
import struct
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from herdbook.domain.errors import HerdbookError, InvalidValue
from herdbook.domain.location.areas import KIB
from herdbook.entrypoints.client_socket import CONNECT, LINK
from herdbook.entrypoints.http.guard import LARGEST_BODY
from herdbook.entrypoints.http.served_folders import ServedFolders
from herdbook.entrypoints.liveness import LeaseRenewal
from herdbook.entrypoints.rpc import messages
from herdbook.entrypoints.rpc.dispatcher import Dispatcher
from herdbook.entrypoints.rpc.errors import to_rpc_error
from herdbook.entrypoints.rpc.messages import METHOD_NOT_FOUND, RpcError
from herdbook.entrypoints.rpc.server import Server
from herdbook.entrypoints.rpc.writer import MessageWriter
from herdbook.entrypoints.server_context import ServerContext

MOST_CONNECTIONS = 256
FIRST_SECONDS = 10.0
BUSY_SECONDS = 0.1
LONGEST_FIRST = 64 * KIB
MakeLink = Callable[[str | None], str]
"""Called with the folder whose repository the page shows; None for the first."""


class LocalSocket:
    """Accepts connections of this account, each served by threads of its own."""

    def __init__(self, path: str, folders: ServedFolders, make_link: MakeLink) -> None:
        self._folders = folders
        self._make_link = make_link
        self._mutex = threading.Lock()
        self._connections: dict[socket.socket, threading.Thread] = {}
        self._socket = socket.socket(socket.AF_UNIX)
        Path(path).unlink(missing_ok=True)
        old = os.umask(0o177)  # from its first moment on it is nobody else's
        try:
            self._socket.bind(path)
        finally:
            os.umask(old)
        self._socket.listen(128)
        threading.Thread(target=self._accept, name="herdbook-socket", daemon=True).start()

    def close(self) -> None:
        """Accept nothing more; what was begun is answered."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        with self._mutex:
            connections = dict(self._connections)
        for each in connections:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RD)
        for thread in connections.values():
            thread.join(FIRST_SECONDS)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                if self._socket.fileno() < 0:
                    return
                time.sleep(BUSY_SECONDS)  # there is no descriptor left for now
                continue
            if peer_uid(connection) != os.geteuid() or len(self._connections) >= MOST_CONNECTIONS:
                connection.close()
                continue
            thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
            with self._mutex:
                self._connections[connection] = thread
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            with connection:
                self._begin(connection)
        except OSError:
            return  # the other side has gone
        finally:
            with self._mutex:
                self._connections.pop(connection, None)

    def _begin(self, connection: socket.socket) -> None:
        connection.settimeout(FIRST_SECONDS)
        request = messages.parse_message(_read_line(connection))
        connection.settimeout(None)
        if not isinstance(request, messages.Request):
            return
        try:
            answer, server = self._answer_first(request)
        except HerdbookError as error:
            _send(connection, messages.error_response(request.id, to_rpc_error(error)))
            return
        except RpcError as error:
            _send(connection, messages.error_response(request.id, error))
            return
        _send(connection, messages.response(request.id, answer))
        if server is not None:
            self._serve_rpc(server, connection.fileno())

    def _serve_rpc(self, server: ServerContext, descriptor: int) -> None:
        """Serve a program until it leaves; what its agent holds is renewed until then."""
        renewal = LeaseRenewal(server.call)
        server.on_lease = renewal.expect
        if not server.call().identity.is_person:
            renewal.start()
        writer = MessageWriter(descriptor, server.call)
        try:
            Server(Dispatcher(server, writer), writer, descriptor, limit=LARGEST_BODY).run()
        finally:
            renewal.stop()

    def _answer_first(self, request: messages.Request) -> tuple[Any, ServerContext | None]:
        """The answer to the first message, and the context of all others if there are any."""
        params = request.params if isinstance(request.params, dict) else {}
        if request.method == LINK:
            wanted = params.get("folder")
            return self._make_link(wanted if isinstance(wanted, str) else None), None
        if request.method != CONNECT:
            raise RpcError(METHOD_NOT_FOUND, f"a connection begins with {CONNECT}")
        named, agent, session = map(params.get, ("folder", "agent", "session"))
        if not isinstance(named, str):
            raise InvalidValue("folder", "must be the absolute path of a folder that is served")
        if not all(isinstance(each, str | None) for each in (agent, session)):
            raise InvalidValue("agent", "and session must be texts")
        return self._folders.find(named)[0], self._folders.find_for(named, agent, session)


def peer_uid(connection: socket.socket) -> int:
    """The account of the process at the other side, as the kernel knows it."""
    if hasattr(socket, "SO_PEERCRED"):
        ids = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        return int(struct.unpack("3i", ids)[1])
    # BSD and macOS: LOCAL_PEERCRED gives a struct xucred, which begins with a version and the uid.
    return int(struct.unpack_from("2I", connection.getsockopt(0, 1, 128))[1])


def _read_line(connection: socket.socket) -> bytes:
    """The first line, which comes alone: its sender waits for the answer."""
    line = b""
    while not line.endswith(b"\n"):
        data = connection.recv(LONGEST_FIRST)
        if not data or len(line) + len(data) > LONGEST_FIRST:
            raise ConnectionError
        line += data
    return line


def _send(connection: socket.socket, message: dict[str, Any]) -> None:
    connection.sendall(messages.encode_or_fail(message) + b"\n")
