"""Opens one connection to a Postgres server, within a time limit."""

import math
import os
import queue
import socket
import threading
from ipaddress import ip_address
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from herdbook.adapters.postgres.bounded_connection import (
    SLACK,
    BinaryTextLoader,
    BoundedConnection,
    TextLoader,
    UtcLoader,
)

SHORTEST = 2
"""The driver waits for at least this many seconds."""
LONGEST = 10**6
"""The longest patience in seconds that is passed on: the kernel's limits are small numbers."""
NEAR = ("", "localhost", "127.0.0.1", "::1")


def connect(driver: str, patience: float) -> BoundedConnection:
    """A new connection that gives up on a silent server after `patience` seconds.

    Nothing is set on its session, which others may share behind a pooler: settings belong to a
    transaction. Raises the driver's errors, ConnectionTimeout when nobody answers in time.
    """
    given = conninfo_to_dict(driver)
    given |= _resolve(given, patience)
    hosts = str(given.get("host") or "").count(",") + 1
    patience = min(patience, LONGEST)
    timeout = max(SHORTEST, int(patience / hosts))
    wanted = str(given.get("connect_timeout") or "")
    if wanted.isdigit():
        timeout = min(timeout, max(SHORTEST, int(wanted)))
    limit = patience + SLACK
    settings: dict[str, Any] = {
        "client_encoding": "UTF8",
        # How the kernel notices a peer that is gone, both while idle and with data unsent.
        "keepalives_idle": max(1, math.ceil(patience / 3)),
        "keepalives_interval": max(1, math.ceil(patience / 6)),
        "keepalives_count": 3,
        "tcp_user_timeout": math.ceil(limit * 1_000),
        **given,
        "connect_timeout": timeout,
        "application_name": "herdbook",
    }
    connection = BoundedConnection.connect(autocommit=True, **settings)
    connection.limit = limit
    connection.adapters.register_loader("json", TextLoader)
    connection.adapters.register_loader("json", BinaryTextLoader)
    connection.adapters.register_loader("timestamptz", UtcLoader)
    # Statements are prepared once it is known that nobody shares the session.
    connection.prepare_threshold = None
    return connection


def is_near(connection: psycopg.Connection[Any]) -> bool:
    """Whether the server is on this machine, so that a round trip takes no time."""
    host = connection.info.host
    return host.startswith("/") or host in NEAR


def _resolve(given: dict[str, Any], patience: float) -> dict[str, str]:
    """The addresses of hosts that have names; the driver would wait for these without a limit."""
    if given.get("hostaddr") or os.environ.get("PGHOSTADDR"):
        return {}
    hosts = str(given.get("host") or os.environ.get("PGHOST", "")).split(",")
    ports = str(given.get("port") or os.environ.get("PGPORT") or "5432").split(",")
    if not any(map(_is_name, hosts)):
        return {}
    found: list[tuple[str, str, str]] = []
    failures: list[OSError] = []
    for number, host in enumerate(hosts):
        port = ports[number] if number < len(ports) else ports[0]
        try:
            addresses = _addresses(host, patience) if _is_name(host) else [""]
        except socket.gaierror as error:
            failures.append(error)
            continue
        found += [(host, address, port) for address in addresses]
    if not found:
        raise psycopg.OperationalError(f"{','.join(hosts)}: {failures[0].strerror}")
    columns = (",".join(each) for each in zip(*found, strict=True))
    return dict(zip(("host", "hostaddr", "port"), columns, strict=True))


def _is_name(host: str) -> bool:
    if host in NEAR or host.startswith(("/", "@")):
        return False
    try:
        ip_address(host.partition("%")[0])
    except ValueError:
        return True
    return False


def _addresses(host: str, patience: float) -> list[str]:
    """Look up a host's addresses in a thread: a name server may be silent and block Ctrl-C.

    Raises ConnectionTimeout, or gaierror if there is none.
    """
    answers: queue.SimpleQueue[list[str] | socket.gaierror] = queue.SimpleQueue()

    def ask() -> None:
        try:
            found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        except OSError as error:
            answers.put(socket.gaierror(*error.args))
            return
        answers.put(list(dict.fromkeys(str(address[0]) for *_, address in found)))

    threading.Thread(target=ask, name="herdbook-resolve", daemon=True).start()
    try:
        answer = answers.get(timeout=patience)
    except queue.Empty:
        raise psycopg.errors.ConnectionTimeout(f"no address of {host}") from None
    if isinstance(answer, socket.gaierror):
        raise answer
    return answer
