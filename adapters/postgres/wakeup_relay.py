"""The relay: the one LISTEN connection of a user on a machine, whoever of its processes has it."""

import fcntl
import logging
import os
import select
import threading
from collections.abc import Callable, Iterable
from contextlib import closing
from time import monotonic

import psycopg
from psycopg.pq import PGnotify

from herdbook.adapters.postgres.begin import Mode, begin
from herdbook.adapters.postgres.bounded_connection import BoundedConnection
from herdbook.adapters.postgres.connection_pool import ConnectionPool
from herdbook.adapters.wakeups.coalesce import PendingRing
from herdbook.adapters.wakeups.messages import encode_entries
from herdbook.adapters.wakeups.socket_folder import make_folder
from herdbook.adapters.wakeups.sockets import SocketListener, has_listeners, ring_sockets
from herdbook.domain.errors import HerdbookError
from herdbook.domain.journal import JournalEntry
from herdbook.ports.engine.wakeups import LOOK

_LOG = logging.getLogger(__name__)

ReadEntries = Callable[[str, int, int], list[JournalEntry]]
"""Reads entries of a space after a number, at most so many."""
MOST_RELAYED = 32
LONGEST_NUMBER = 18
POOLED_PAUSE = 60.0
"""After how many seconds to look again whether there still is a pooler in between."""


class Relay:
    """Passes on what other machines notify, while this process listens and no other one does."""

    def __init__(
        self,
        folder: str,
        node: str,
        channel: str,
        connections: ConnectionPool,
        read_entries: ReadEntries,
    ) -> None:
        self._folder = folder
        self._node = node
        self._channel = channel
        self._connections = connections
        self._read_entries = read_entries
        self._mutex = threading.Lock()
        self._listeners = 0
        self._thread: threading.Thread | None = None
        self._not_before = 0.0
        self._heard: dict[str, tuple[int, float]] = {}

    def join(self) -> None:
        """Count a listener of this process, and take over the relay if it is free."""
        with self._mutex:
            self._listeners += 1
        self.take_over()

    def leave(self) -> None:
        """Count one less; without any the relay ends."""
        with self._mutex:
            self._listeners -= 1

    def take_over(self) -> None:
        """Become the relay unless another process is, or this one."""
        with self._mutex:
            if self._thread is not None or monotonic() < self._not_before:
                return
            try:
                lock = _try_lock(self._folder)
            except OSError as error:
                _LOG.debug("the relay of %s cannot be locked: %s", self._folder, error)
                return
            if lock is None:
                return
            name = "herdbook-relay"
            self._thread = threading.Thread(target=self._run, args=(lock,), name=name, daemon=True)
            self._thread.start()

    def _run(self, lock: int) -> None:
        try:
            # It hears what this machine has rung already, which need not be rung again.
            with SocketListener(self._folder, self._node) as local:
                while self._listeners > 0 and monotonic() >= self._not_before:
                    try:
                        with closing(self._connections.connect_once()) as connection:
                            self._pass_on(connection, local)
                    except (HerdbookError, psycopg.Error) as error:
                        _LOG.debug("changes of other machines show later: %s", error)
                        local.wait()
        finally:
            with self._mutex:
                self._thread = None
            os.close(lock)

    def _pass_on(self, connection: BoundedConnection, local: SocketListener) -> None:
        begin(connection, Mode.READ, self._connections.patience)
        if not connection.is_direct:
            # Behind a pooler a LISTEN is another client's a moment later.
            self._not_before = monotonic() + POOLED_PAUSE
            return
        connection.run_script(f'ROLLBACK; LISTEN "{self._channel}"'.encode())
        libpq, poll = connection.pgconn, select.poll()
        poll.register(libpq.socket, select.POLLIN)
        poll.register(local, select.POLLIN)
        while self._listeners > 0:
            poll.poll(LOOK * 1_000)
            for message in local.receive():
                self._hear(message)
            libpq.consume_input()
            news = self._find_news(iter(libpq.notifies, None))
            if news:
                rings = {space: self._make_ring(space, seq) for space, seq in news.items()}
                ring_sockets(self._folder, self._node, rings)

    def _hear(self, message: bytes) -> None:
        """Remember what was rung on this machine."""
        space, seq = _parse(message)
        self._heard[space] = seq, monotonic()

    def _find_news(self, notices: Iterable[PGnotify]) -> dict[str, int]:
        """The spaces and numbers that were not rung on this machine a moment ago."""
        news: dict[str, int] = {}
        for notice in notices:
            space, seq = _parse(notice.extra)
            known, at = self._heard.get(space, (0, 0.0))
            if seq > known or monotonic() - at > LOOK:
                news[space] = max(seq, news.get(space, 0))
        return news

    def _make_ring(self, space: str, seq: int) -> PendingRing:
        """A ring with the entries that nobody here can have yet, read once for all listeners."""
        known, _ = self._heard.get(space, (0, 0.0))
        if not has_listeners(self._folder, space) or not seq:
            return PendingRing(seq)
        try:
            entries = self._read_entries(space, max(known, seq - MOST_RELAYED), MOST_RELAYED)
        except (HerdbookError, psycopg.Error) as error:
            _LOG.debug("the entries of %s are left to those who want them: %s", space, error)
            return PendingRing(seq)
        return PendingRing(seq, encode_entries(entries))


def _parse(message: bytes) -> tuple[str, int]:
    """The space and the number of a message; anybody with an account can send others."""
    space, _, seq = message.partition(b"\0")[0].decode(errors="replace").rpartition(" ")
    is_number = seq.isascii() and seq.isdecimal() and len(seq) <= LONGEST_NUMBER
    return space, int(seq) if is_number else 0


def _try_lock(folder: str) -> int | None:
    """The folder's descriptor, locked if nobody else has; raises OSError if there can be none."""
    make_folder(folder)
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    except BaseException:
        os.close(lock)
        raise
    return lock
