"""Connections to a Postgres server: kept for a short while, never shared across a fork."""

import os
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from time import monotonic
from typing import Any

import psycopg

from herdbook.adapters.postgres.address import read_address
from herdbook.adapters.postgres.begin import (
    Mode,
    begin,
    epoch_microseconds,
    from_epoch_microseconds,
)
from herdbook.adapters.postgres.bounded_connection import SLACK, BoundedConnection
from herdbook.adapters.postgres.connect import connect
from herdbook.adapters.postgres.errors import (
    OUT_OF_REACH,
    SHARED_SESSION,
    TOO_MANY_CLIENTS,
    has_code_or_text,
    translate_connect_error,
    translate_error,
)
from herdbook.domain.errors import HerdbookError, StoreBusy, StoreUnavailable
from herdbook.ports.engine.long_work import is_long_work
from herdbook.ports.engine.retry import Retry
from herdbook.ports.engine.store import TryAgain

MAX_IDLE = 8
"""How many idle connections are kept open for the next transaction."""
IDLE_SECONDS = 2.0
"""After how many seconds an idle one is closed: a server has few, and others need them."""
LIFETIME_SECONDS = 10.0
"""After how many seconds one is closed, so that others get it if there are too few."""
CROWDED_SECONDS = 10.0
"""For how many seconds no idle one is kept after the server had none left."""
RESTART_SECONDS = 5.0
"""How many seconds to wait for an unreachable server that has never answered before."""
ROLLBACK_SECONDS = 1.0
"""How many seconds to wait for the answer to a rollback before another connection is opened."""

# A writer has locked a row of the heads; sessions that wait for one are left out.
_HOLDER = f"""
SELECT pid, application_name, {epoch_microseconds("xact_start")}
FROM pg_locks JOIN pg_stat_activity USING (pid)
WHERE relation = to_regclass($1) AND mode = 'RowShareLock' AND granted
AND pid <> pg_backend_pid() AND wait_event_type IS DISTINCT FROM 'Lock'
ORDER BY xact_start LIMIT 1
"""
# A server that does not track activity is assumed to be at work.
_AT_WORK = """
SELECT 1 FROM pg_stat_activity WHERE pid = $1::integer AND state IN ('active', 'disabled')
"""


class ConnectionPool:
    """A few connections that transactions borrow, one each."""

    def __init__(self, url: str, *, patience: float) -> None:
        self._address = read_address(url)
        self.place, self.schema = self._address.seen, self._address.schema
        self.patience = patience
        self._idle: list[BoundedConnection] = []
        self._guard = threading.Lock()
        self._timer: threading.Timer | None = None
        self._pid = os.getpid()
        self._closed = False
        self._met = self._is_shared = False
        self._crowded_until = 0.0

    def connect(self) -> BoundedConnection:
        """A new connection; tries again until the patience has passed.

        A server may have no connection left, or be about to restart. Raises StoreUnavailable with
        the reason of the last attempt.
        """
        retry = Retry(self.patience)
        while True:
            try:
                connection = self.connect_once()
            except TryAgain as error:
                cause = error.__cause__
                is_away = isinstance(cause, psycopg.Error) and has_code_or_text(cause, OUT_OF_REACH)
                self._met = self._met or not is_away
                if not retry.pause(None if self._met else RESTART_SECONDS):
                    raise StoreUnavailable(self.place, error.reason) from cause
            else:
                self._met = True
                return connection

    def connect_once(self, patience: float | None = None) -> BoundedConnection:
        """A new connection; raises TryAgain if another attempt may succeed."""
        try:
            connection = connect(self._address.driver, patience or self.patience)
        except psycopg.Error as error:
            if has_code_or_text(error, TOO_MANY_CLIENTS):
                self._crowded_until = monotonic() + CROWDED_SECONDS
                self._close_idle()
            raise translate_connect_error(error, self.place, self.patience) from error
        if self._is_shared:
            connection.is_direct = False
        return connection

    @contextmanager
    def borrow(self, *, keep_trying: bool = True) -> Iterator[BoundedConnection]:
        """A connection for one transaction; a broken one is not kept."""
        connection, pid = self._take(keep_trying=keep_trying), os.getpid()
        if is_long_work():
            connection.is_at_work = partial(self._is_at_work, connection)
        try:
            yield connection
        except psycopg.Error as error:
            raise self.translate_error(error) from error
        finally:
            # A child that was forked meanwhile leaves it to its parent.
            if os.getpid() == pid:
                self._give_back(connection)

    def send_unanswered(self, script: bytes) -> None:
        """Send a whole transaction; who uses the connection next reads the answer, if there is one.

        Raises the driver's errors and what `connect_once` raises.
        """
        connection = self._take(keep_trying=False)
        try:
            connection.pgconn.send_query(script)
        except BaseException:
            connection.close()
            raise
        self._keep(connection)

    def translate_error(self, error: psycopg.Error) -> HerdbookError:
        """The Herdbook error for an error of a statement.

        StoreBusy names who holds the space, if the server says so.
        """
        if error.sqlstate in SHARED_SESSION:
            # There is a pooler that was not detected: from now on nothing is prepared.
            self._is_shared = True
            self._close_idle()
        found = translate_error(error, self.place, self.patience)
        if not isinstance(found, StoreBusy):
            return found
        rows = self._ask(_HOLDER, f'"{self.schema}"."heads"')
        if not rows:
            return found
        ((pid, program, since),) = rows
        holder = f"server process {pid} ({program})"
        return StoreBusy(found.place, found.waited, holder, from_epoch_microseconds(since))

    def _is_at_work(self, connection: BoundedConnection) -> bool:
        """Whether the server is busy with what a connection waits for."""
        return bool(self._ask(_AT_WORK, str(connection.server_pid)))

    def _ask(self, question: str, argument: str) -> list[tuple[Any, ...]]:
        """Query another session's state on a connection of its own; no rows if that fails."""
        patience = min(self.patience, SLACK)
        try:
            with closing(self.connect_once(patience)) as connection:
                return begin(connection, Mode.READ, patience, question, argument)
        except (psycopg.Error, HerdbookError):
            return []

    def _take(self, *, keep_trying: bool) -> BoundedConnection:
        self._forget_inherited()
        while True:
            with self._guard:
                connection = self._idle.pop() if self._idle else None
            if connection is None:
                return self.connect() if keep_trying else self.connect_once()
            if connection.is_ready(min(self.patience, ROLLBACK_SECONDS)):
                return connection
            connection.close()

    def _give_back(self, connection: BoundedConnection) -> None:
        connection.is_at_work = None
        if connection.send_rollback():
            self._keep(connection)
        else:
            connection.close()

    def _keep(self, connection: BoundedConnection) -> None:
        """Keep a connection for the next transaction, or close it."""
        now = connection.used_at = monotonic()
        with self._guard:
            fresh = now - connection.made_at < LIFETIME_SECONDS and now >= self._crowded_until
            fresh = fresh and not (self._is_shared and connection.is_direct)
            if fresh and not self._closed and len(self._idle) < MAX_IDLE:
                self._idle.append(connection)
                self._watch_idle()
                return
        connection.close()

    def _watch_idle(self) -> None:
        if self._timer is None:
            self._timer = threading.Timer(IDLE_SECONDS, self._close_unused)
            self._timer.daemon = True
            self._timer.name = "herdbook-idle-connections"
            self._timer.start()

    def _close_unused(self) -> None:
        with self._guard:
            before = monotonic() - IDLE_SECONDS
            unused = [each for each in self._idle if each.used_at <= before]
            self._idle = [each for each in self._idle if each.used_at > before]
            self._timer = None
            if self._idle:
                self._watch_idle()
        for connection in unused:
            connection.close()

    def _close_idle(self) -> None:
        with self._guard:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _forget_inherited(self) -> None:
        """In a forked child: start empty. The parent's connections stay the parent's."""
        if self._pid != os.getpid():
            self._idle, self._guard, self._timer = [], threading.Lock(), None
            self._pid = os.getpid()

    def close(self) -> None:
        """Close idle connections now, and the others when they are given back."""
        self._forget_inherited()
        with self._guard:
            self._closed = True
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
        self._close_idle()
