"""Connections to a Postgres server: kept, renewed when they broke, never shared over a fork."""

import os
import selectors
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import psycopg
from psycopg.adapt import Loader

from herdbook.adapters.postgres.address import read_address
from herdbook.domain.errors import (
    HerdbookError,
    StoreBusy,
    StoreDamaged,
    StoreFull,
    StoreUnavailable,
)
from herdbook.ports.store import TryAgain

KEPT = 8
NEAR = ("", "localhost", "127.0.0.1", "::1")
_AGAIN = ("40001", "40P01", "57P01", "57P02", "57P03", "53300")
_BUSY = ("55P03", "57014")
_FULL = ("53100", "54000")
_DAMAGED = ("XX001", "XX002", "42P01", "42703", "3F000")


# Whoever writes has locked a row of the heads; of those who wait for one we need no word.
_HOLDER = """
SELECT pid, application_name, xact_start FROM pg_locks JOIN pg_stat_activity USING (pid)
WHERE relation = to_regclass(%s) AND mode = 'RowShareLock' AND granted
AND pid <> pg_backend_pid() AND wait_event_type IS DISTINCT FROM 'Lock'
ORDER BY xact_start LIMIT 1
"""


class _AsText(Loader):
    """Leaves JSON as the text it is: it is decoded by declared type, not by looking at it."""

    def load(self, data: Any) -> str:
        return bytes(data).decode()


class _AsBinaryText(_AsText):
    """The same for answers in binary form."""

    format = psycopg.pq.Format.BINARY


def _text_of(error: psycopg.Error) -> str:
    if error.diag.message_primary:
        return error.diag.message_primary
    # What is indented guesses at reasons.
    lines = [line for line in str(error).splitlines() if not line.startswith("\t")]
    return "; ".join(dict.fromkeys(filter(None, lines)))


def translated(error: psycopg.Error, place: str, patience: float) -> HerdbookError:
    """The server's errors as ours; the one place that knows them."""
    code = error.sqlstate or ""
    if code in _AGAIN or code.startswith("08"):
        return TryAgain(place, _text_of(error))
    if code in _BUSY:
        return StoreBusy(place, patience)
    if code in _FULL:
        return StoreFull(place, _text_of(error))
    if code in _DAMAGED:
        return StoreDamaged(place, _text_of(error))
    if not code and isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return TryAgain(place, _text_of(error) or "the connection broke")
    return StoreUnavailable(place, _text_of(error))


def is_near(connection: psycopg.Connection[Any]) -> bool:
    """Whether the server is on this machine, so that a way there and back takes no time."""
    host = connection.info.host
    return host.startswith("/") or host in NEAR


def _has_ended(connection: psycopg.Connection[Any], patience: float) -> bool:
    """Whether a connection is as good as new; if it had something to undo, that has been done."""
    libpq = connection.pgconn
    try:
        while libpq.transaction_status == psycopg.pq.TransactionStatus.ACTIVE:
            libpq.consume_input()
            if not libpq.is_busy():
                libpq.get_result()
                continue
            with selectors.DefaultSelector() as answer:
                answer.register(libpq.socket, selectors.EVENT_READ)
                if not answer.select(patience):
                    return False
    except psycopg.Error:
        return False
    idle = psycopg.pq.TransactionStatus.IDLE
    return libpq.transaction_status == idle and not connection.closed


class Connections:
    """A few connections that units of work borrow, one each."""

    def __init__(self, url: str, *, patience: float) -> None:
        self._address = read_address(url)
        self.place, self.schema = self._address.seen, self._address.schema
        self.patience = patience
        self._idle: list[psycopg.Connection[Any]] = []
        self._guard = threading.Lock()
        self._pid = os.getpid()

    def connect(self) -> psycopg.Connection[Any]:
        """A new connection, in UTC, that waits for locks no longer than our patience."""
        milliseconds = max(1, int(self.patience * 1_000))  # 0 would mean: wait for ever
        try:
            connection = psycopg.connect(
                self._address.driver,
                autocommit=True,
                connect_timeout=max(2, int(self.patience)),
                application_name="herdbook",
                options=f"-c TimeZone=UTC -c lock_timeout={milliseconds} "
                "-c client_min_messages=warning",
            )
        except psycopg.Error as error:
            raise self._unreachable(error) from error
        connection.adapters.register_loader("json", _AsText)
        connection.adapters.register_loader("json", _AsBinaryText)
        return connection

    def _unreachable(self, error: psycopg.Error) -> HerdbookError:
        if isinstance(error, psycopg.errors.ConnectionTimeout):
            return StoreUnavailable(self.place, f"no answer within {self.patience:g} s")
        found = translated(error, self.place, self.patience)
        # Wrong names and passwords come without a code; trying them again changes nothing.
        lasting = ("authentication failed", "does not exist", "no password supplied")
        if isinstance(found, TryAgain) and any(text in str(error) for text in lasting):
            return StoreUnavailable(self.place, _text_of(error))
        return found

    @contextmanager
    def borrowed(self) -> Iterator[psycopg.Connection[Any]]:
        """A connection for one transaction; a broken one is not kept."""
        connection, pid = self._take(), os.getpid()
        try:
            yield connection
        except psycopg.Error as error:
            raise self._with_holder(translated(error, self.place, self.patience)) from error
        finally:
            # A child forked in the midst leaves it to its parent.
            if os.getpid() == pid:
                self._give_back(connection)

    def _take(self) -> psycopg.Connection[Any]:
        if self._pid != os.getpid():
            # The parent's connections stay the parent's, and its threads do not run here.
            self._idle, self._guard, self._pid = [], threading.Lock(), os.getpid()
        with self._guard:
            while self._idle:
                connection = self._idle.pop()
                if _has_ended(connection, self.patience):
                    return connection
                connection.close()
        return self.connect()

    def _give_back(self, connection: psycopg.Connection[Any]) -> None:
        if connection.closed:
            return
        try:
            if connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
                # Who takes it next reads the answer, which has come by then.
                connection.pgconn.send_query(b"ROLLBACK")
        except psycopg.Error:
            # It is of no use any more, and what it had begun ends with it.
            connection.close()
            return
        with self._guard:
            if len(self._idle) < KEPT and connection.broken is False:
                self._idle.append(connection)
                return
        connection.close()

    def _with_holder(self, error: HerdbookError) -> HerdbookError:
        """StoreBusy with the name of whoever holds the space, if the server tells."""
        if not isinstance(error, StoreBusy):
            return error
        try:
            with self.connect() as connection:
                row = connection.execute(_HOLDER, [f'"{self.schema}"."heads"']).fetchone()
        except (psycopg.Error, HerdbookError):
            row = None
        if row is None:
            return error
        since: datetime = row[2].replace(tzinfo=UTC)
        return StoreBusy(error.place, error.waited, f"server process {row[0]} ({row[1]})", since)

    def close(self) -> None:
        """Close what is idle."""
        with self._guard:
            idle, self._idle = self._idle, []
        if self._pid == os.getpid():
            for connection in idle:
                connection.close()
