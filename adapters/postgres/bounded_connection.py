"""A connection on which no call waits longer than its limit, and which Ctrl-C always ends."""

import fcntl
import secrets
import select
import termios
from array import array
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import Any, TypeVar

import psycopg
from psycopg import generators, waiting
from psycopg.abc import PQGen
from psycopg.adapt import Loader, Transformer
from psycopg.pq import ConnStatus, ExecStatus, Format, TransactionStatus
from psycopg.pq.abc import PGresult

from herdbook.adapters.postgres.errors import NoAnswer

R = TypeVar("R")

SLACK = 2.0
"""How many seconds longer than a lock we wait for the server's own report that it gave up."""
INTERVAL = 0.1
"""After how many seconds a wait checks again whether it may go on."""
CANCELLING = 0.5
"""How many seconds to try to cancel a statement whose answer nobody waits for any more."""
_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)


class BoundedConnection(psycopg.Connection[Any]):
    """A connection whose calls end when the server has been silent for `limit` seconds.

    Everything that is sent or received counts, so that a large answer takes its time. If
    `is_at_work` is set, it is asked then, and as long as it returns True the call goes on waiting.
    A call that ends in this way, or by an exception of a signal, closes the connection.
    """

    limit = SLACK
    is_at_work: Callable[[], bool] | None = None
    is_direct: bool | None = None
    """Whether the session is ours alone; None until the server was asked."""
    server_pid = 0

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.made_at = self.used_at = monotonic()
        self._script_loaders = Transformer.from_context(self)
        self.sql_statements: dict[str, str] = {}
        """The names of the statements that were prepared in SQL, by their text."""
        # Names that nobody else uses: if the session is shared after all, another client's
        # statement must not run under ours.
        self._prepared._prepared_idx = secrets.randbits(60)  # noqa: SLF001 - no other way

    def wait(self, gen: PQGen[R], interval: float = INTERVAL, timeout: float | None = None) -> R:
        """Run a driver's generator to its end; NoAnswer when the server is silent for too long."""
        try:
            if timeout is not None:
                return super().wait(gen, interval, timeout)
            return waiting.wait(self._watch(gen), self.pgconn.socket, interval=interval)
        except (NoAnswer, KeyboardInterrupt, SystemExit):
            self.abandon()
            raise

    def run_script(self, text: bytes) -> list[PGresult]:
        """Run statements that travel as one message, and return the result of each.

        As a cursor would, but without the time that a cursor takes for each of them.
        """
        self.pgconn.send_query(text)
        results: list[PGresult] = self.wait(generators.execute(self.pgconn))
        if results[-1].status == ExecStatus.FATAL_ERROR:
            raise psycopg.errors.error_from_result(results[-1])
        return results

    def rows_of(self, result: PGresult) -> list[tuple[Any, ...]]:
        """The rows of such a result."""
        self._script_loaders.set_pgresult(result)
        return self._script_loaders.load_rows(0, result.ntuples, tuple)

    def _watch(self, gen: PQGen[R]) -> PQGen[R]:
        doubted, unsent = False, 0
        try:
            wanted = next(gen)
            heard_at = monotonic()
            while True:
                ready = yield wanted
                if ready:
                    heard_at, doubted = monotonic(), False
                elif unsent != (unsent := self._unsent_bytes()):
                    heard_at = monotonic()
                elif monotonic() - heard_at > self.limit:
                    if self.is_at_work is not None and self.is_at_work():
                        heard_at, doubted = monotonic(), False
                    elif self.is_at_work is None or doubted:
                        raise NoAnswer(f"no answer within {self.limit:g} s")
                    else:
                        # The statement may just have ended, with the answer on its way.
                        heard_at, doubted = monotonic() - self.limit + SLACK, True
                wanted = gen.send(ready)
        except StopIteration as end:
            result: R = end.value
            return result

    def _unsent_bytes(self) -> int:
        """How many bytes the system has taken from us and not yet delivered."""
        number = array("i", [0])
        with suppress(OSError):
            fcntl.ioctl(self.pgconn.socket, termios.TIOCOUTQ, number)
        return number[0]

    def abandon(self) -> None:
        """Close the connection during a call; cancel it on the server if that takes no time."""
        try:
            active = self.pgconn.transaction_status == TransactionStatus.ACTIVE
            if active and psycopg.capabilities.has_cancel_safe():
                with suppress(psycopg.Error):
                    self.cancel_safe(timeout=CANCELLING)
        finally:
            self.close()

    def send_rollback(self) -> bool:
        """End a transaction without waiting for the answer; False if the connection is gone."""
        try:
            if self.pgconn.transaction_status != TransactionStatus.IDLE:
                self.pgconn.send_query(b"ROLLBACK")
        except psycopg.Error:
            return False
        return not self.closed and not self.broken

    def is_ready(self, seconds: float) -> bool:
        """Whether it can be used: no answer is outstanding, and the server has not hung up."""
        libpq, deadline = self.pgconn, monotonic() + seconds
        poll = select.poll()
        try:
            poll.register(libpq.socket, select.POLLIN)
            while libpq.transaction_status == TransactionStatus.ACTIVE:
                if not libpq.is_busy():
                    libpq.get_result()
                elif poll.poll(max(0, (deadline - monotonic()) * 1_000)):
                    libpq.consume_input()
                else:
                    return False
            if poll.poll(0):
                libpq.consume_input()
        except psycopg.Error:
            return False
        return libpq.status == ConnStatus.OK and libpq.transaction_status == TransactionStatus.IDLE


class TextLoader(Loader):
    """Leaves JSON as text: it is decoded by its declared type, not by its content."""

    def load(self, data: Any) -> str:
        return bytes(data).decode()


class BinaryTextLoader(TextLoader):
    """The same for answers in binary form."""

    format = Format.BINARY


class UtcLoader(Loader):
    """Reads times in UTC, whatever the time zone of the session is."""

    format = Format.BINARY

    def load(self, data: Any) -> datetime:
        microseconds = int.from_bytes(bytes(data), "big", signed=True)
        try:
            return _EPOCH + timedelta(microseconds=microseconds)
        except OverflowError as error:
            raise psycopg.DataError("a time that Python cannot tell") from error
