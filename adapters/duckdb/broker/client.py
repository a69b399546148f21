"""Finds the broker of a database file, and begins transactions in it.

There need not be one: a process that finds none, or one that does not answer, uses the file
directly, under the lock that the broker takes as well.
"""

import logging
import os
import sys
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from hashlib import blake2b
from pathlib import Path
from socket import socket
from time import monotonic
from typing import Any

from herdbook.adapters.duckdb.broker import address, wire
from herdbook.adapters.duckdb.broker.session import BrokerSession
from herdbook.adapters.locks.lock_file import program_name
from herdbook.adapters.sql.layout import catalogue_json
from herdbook.adapters.sql.session import Tables
from herdbook.domain.errors import HerdbookError, StoreBusy
from herdbook.ports.engine.kinds import Dictionary

_LOG = logging.getLogger(__name__)

ANSWER_SECONDS = 1.0
"""How long a broker may take to accept a connection; then it counts as none."""
GRACE = 2.0
"""How much longer than its patience a client waits for the broker to end a wait itself."""


class BrokerGone(Exception):
    """The broker serves this file no longer."""


class Connection:
    """A connection to a broker, on which one transaction at a time runs."""

    def __init__(self, opened: socket, process: int) -> None:
        self.process = process
        self.is_usable = True
        self.pid = os.getpid()
        self._socket = opened
        _CONNECTIONS.add(self)

    def call(self, message: list[Any], timeout: float | None) -> list[Any]:
        """Send a message and wait for its answer; after any error the connection is unusable.

        Raises an OSError if the connection breaks, TimeoutError if no answer comes, BrokerGone,
        FrameTooLarge before anything is sent, and the errors of the broker.
        """
        frame = wire.encode_frame(message)
        self.is_usable = False
        self._socket.settimeout(timeout)
        self._socket.sendall(frame)
        (length,) = wire.LENGTH.unpack(self._receive(wire.LENGTH.size))
        if length > wire.LARGEST_FRAME:
            raise ConnectionAbortedError("the answer is too large")
        try:
            answer = wire.decode_frame(self._receive(length))
            error = wire.decode_error(answer) if answer[0] == "error" else None
        except (LookupError, TypeError, ValueError) as problem:
            raise ConnectionAbortedError("the answer cannot be read") from problem
        if answer[0] == "gone":
            raise BrokerGone
        self.is_usable = True
        if error is not None:
            raise error
        return answer

    def send(self, message: list[Any]) -> None:
        """Send a message that has no answer. Raises an OSError."""
        self.is_usable = False
        self._socket.sendall(wire.encode_frame(message))
        self.is_usable = True

    def _receive(self, size: int) -> bytearray:
        received = bytearray(size)
        at = 0
        with memoryview(received) as view:
            while at < size:
                more = self._socket.recv_into(view[at:])
                if not more:
                    raise ConnectionResetError("the broker has closed the connection")
                at += more
        return received

    def close(self) -> None:
        """Close it, also in a forked child: the parent's stays open."""
        self.is_usable = False
        self._socket.close()


_CONNECTIONS: "weakref.WeakSet[Connection]" = weakref.WeakSet()


def _forget_inherited() -> None:
    """In a forked child: close its copies, so that the broker sees when the parent ends."""
    for each in list(_CONNECTIONS):
        each.close()
    _NESTING.open.clear()


class _Nesting(threading.local):
    """The transactions that a thread has open, by file: whether they write."""

    def __init__(self) -> None:
        self.open: dict[Path, list[bool]] = {}


_NESTING = _Nesting()
_HOOKED: list[bool] = []


class BrokerClient:
    """The way to the broker of one file, if there is one; connections are kept for the next use."""

    def __init__(self, path: Path, dictionary: Dictionary, tables: Tables) -> None:
        self._path = path
        self._place = str(path)
        self._dictionary = dictionary
        self._tables = tables
        self._mutex = threading.Lock()
        self._idle: list[Connection] = []
        self._pid = os.getpid()
        self._refused: tuple[int, int] | None = None
        self._closed = False
        self.was_lost = False
        """Whether a broker ended while this process used it: others go on without it as well."""

    def describe(self) -> tuple[str, int] | None:
        """The identity and the schema version of the store; None if there is no broker."""
        connected = self._connect()
        if connected is None:
            return None
        connection, uuid, version = connected
        self._put_back(connection)
        return uuid, version

    def begin(
        self, space: str, *, write: bool, patience: float, clock: Callable[[], datetime]
    ) -> BrokerSession | None:
        """Begin a transaction in the broker; None if there is none. Raises what a store raises."""
        mine = _NESTING.open.get(self._path)
        if mine and (write or any(mine)):
            raise RuntimeError(f"this thread already uses {self._path}: transactions do not nest")
        message = ["begin", space, write, patience]
        connection, answer = self._call(message, patience)
        if connection is None:
            return None
        head = answer[1] if answer else None
        mine = _NESTING.open.setdefault(self._path, [])
        mine.append(write)

        def end() -> None:
            mine.remove(write)
            self._put_back(connection)

        return BrokerSession(
            connection,
            self._tables,
            patience=patience,
            place=self._place,
            now=clock(),
            head=head,
            end=end,
            write=write,
        )

    def spaces(self, patience: float) -> list[str] | None:
        """The spaces of the store; None if there is no broker."""
        connection, answer = self._call(["spaces"], patience)
        if connection is None:
            return None
        self._put_back(connection)
        return [str(each) for each in answer[1]]

    def close(self) -> None:
        """Close the connections that are kept."""
        with self._mutex:
            self._closed = True
            idle, self._idle = self._idle, []
        if self._pid == os.getpid():
            for each in idle:
                each.close()

    def _call(self, message: list[Any], patience: float) -> tuple[Connection | None, list[Any]]:
        """Send a first message, on another connection if the broker has begun anew."""
        is_new = self._closed  # then the file itself says so
        while not is_new:
            connection = self._take()
            if connection is None:
                connected = self._connect()
                if connected is None:
                    break
                connection, is_new = connected[0], True
            begun = monotonic()
            try:
                return connection, connection.call(message, patience + GRACE)
            except HerdbookError:
                self._put_back(connection)
                raise
            except TimeoutError as error:
                waited = round(monotonic() - begun, 1)
                holder = f"process {connection.process} (its broker, which does not answer)"
                raise StoreBusy(self._place, waited, holder) from error
            except (OSError, BrokerGone) as error:
                _LOG.debug("a connection to the broker of %s is gone: %s", self._place, error)
                self.was_lost = True
            finally:
                if not connection.is_usable:
                    connection.close()
        return None, []

    def _take(self) -> Connection | None:
        if self._pid != os.getpid():  # in a forked child: the connections are the parent's
            self._pid, self._mutex, self._idle = os.getpid(), threading.Lock(), []
        with self._mutex:
            return self._idle.pop() if self._idle else None

    def _put_back(self, connection: Connection) -> None:
        with self._mutex:
            if connection.is_usable and not self._closed and connection.pid == os.getpid():
                self._idle.append(connection)
                return
            self.was_lost = self.was_lost or not connection.is_usable
        connection.close()

    def _connect(self) -> tuple[Connection, str, int] | None:
        """A new connection that the broker has accepted, and what it says of the store."""
        try:
            there = self._path.stat()
            at = address.broker_address(there)
            listening = os.lstat(at)
        except OSError:
            return None
        if self._refused == (listening.st_ino, listening.st_ctime_ns):
            return None
        try:
            opened = address.connect(at, ANSWER_SECONDS)
        except OSError as error:
            _LOG.debug("nobody can be reached at %s: %s", at, error)
            return None
        if not _HOOKED:
            _HOOKED.append(True)
            os.register_at_fork(after_in_child=_forget_inherited)
        with suppress(OSError, BrokerGone, LookupError, TypeError, ValueError):
            connection = Connection(opened, address.require_same_user(opened))
            answer = connection.call(self._hello(there), ANSWER_SECONDS)
            if answer[0] == "ok":
                self.was_lost = False
                _, uuid, version = answer
                return connection, str(uuid), int(version)
            self._refused = (listening.st_ino, listening.st_ctime_ns)
            _LOG.warning("%s is used without its broker: %s", self._place, answer[1])
        opened.close()
        return None

    def _hello(self, there: os.stat_result) -> list[Any]:
        return [
            "hello",
            wire.PROTOCOL,
            self._place,
            [there.st_dev, there.st_ino],
            dictionary_mark(self._dictionary),
            program_name(sys.argv[0] if sys.argv else ""),
        ]


def dictionary_mark(dictionary: Dictionary) -> str:
    """A digest of a dictionary: two programs with the same one mean the same by its names."""
    text = f"{dictionary.version} {catalogue_json(dictionary)}"
    return blake2b(text.encode(), digest_size=16).hexdigest()
