"""The database file in the hands of its broker: opened and written in a thread of its own.

The broker takes the lock in turn as everybody does, and keeps the file until another process waits
for it. Opening waits for others, and writing for the disk: the loop goes on meanwhile.
"""

import logging
import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import duckdb

from herdbook.adapters.duckdb.broker.commit_group import Statement
from herdbook.adapters.duckdb.errors import translate_errors
from herdbook.adapters.duckdb.file_access import Attachment, SharedFile
from herdbook.adapters.duckdb.parsed_statements import execute
from herdbook.adapters.duckdb.store import WITHIN, DuckDBStore
from herdbook.domain.errors import HerdbookError, StoreBusy, StoreUnavailable

_LOG = logging.getLogger(__name__)

OPEN_SECONDS = 5.0
"""How long one attempt to open the file waits for others."""
LINGER = 3600.0
"""How long the file stays attached while nobody asks for it."""

LONG_LOG = 2**20
"""How many bytes of log to write into the file: they take 0.4 s of a processor to read."""

Opened = AbstractContextManager[Attachment]


class SharedSnapshot:
    """A read transaction that all clients share which began between two commits."""

    def __init__(self, cursor: duckdb.DuckDBPyConnection) -> None:
        self.cursor = cursor
        self.users = 0
        execute(cursor, "BEGIN")
        # DuckDB takes the snapshot with the first statement that reads the file.
        execute(cursor, f"SELECT schema_version FROM {WITHIN}.store").fetchall()


class OpenFile:
    """The file, open or not. `wake` is called when an attempt to open it has ended."""

    def __init__(self, store: DuckDBStore, wake: Callable[[], None]) -> None:
        path = store.file_path
        self._shared = SharedFile(path, patience=OPEN_SECONDS, linger=LINGER, check=store.check)
        self._expected = (store.uuid, store.schema_version)
        self._identity = identity_of(path.stat())
        self._path = path
        self._place = str(path)
        self._wake = wake
        self._executor = ThreadPoolExecutor(1, "herdbook-broker-file")
        self._opening: Future[tuple[Opened, Attachment]] | None = None
        self._opened: Opened | None = None
        self._attachment: Attachment | None = None
        self._snapshot: SharedSnapshot | None = None
        self._is_writing = False
        self._last_use: tuple[object, int] = (None, 0)
        self.was_kept = False
        """Whether nobody else can have used the file since it was open before."""

    @property
    def is_open(self) -> bool:
        """Whether statements can run."""
        return self._attachment is not None

    def start_opening(self) -> None:
        """Begin to open the file unless that has begun; `finish_opening` ends it."""
        if self._opening is None and self._opened is None:
            self._opening = self._executor.submit(self._open)
            self._opening.add_done_callback(lambda _: self._wake())

    def finish_opening(self) -> HerdbookError | None:
        """If an attempt to open it has ended: use the file, or return why it cannot be opened."""
        if self._opening is None or not self._opening.done():
            return None
        opening, self._opening = self._opening, None
        try:
            self._opened, self._attachment = opening.result()
            (hold, number), self._last_use = self._last_use, self._attachment.use_mark
            self.was_kept = self._last_use == (hold, number + 1)
        except StoreBusy:
            return None  # those who wait have their own patience
        except HerdbookError as error:
            return error
        return None

    def _open(self) -> tuple[Opened, Attachment]:
        opened = self._shared.attach(write=True)
        attachment = opened.__enter__()
        try:
            self.require_same_file()
            self._require_same_store(attachment)
        except BaseException as error:
            _leave(opened, error)
            raise
        return opened, attachment

    def _require_same_store(self, attachment: Attachment) -> None:
        """Raise StoreUnavailable if another program has upgraded the store meanwhile."""
        sql = f"SELECT uuid, schema_version FROM {WITHIN}.store"
        with translate_errors(self._place):
            rows = attachment.cursor.execute(sql).fetchall()
        if rows != [self._expected]:
            raise StoreUnavailable(self._place, "it is another store, or of another version")

    def require_same_file(self) -> None:
        """Raise StoreUnavailable if the file is no longer the one that was opened at first."""
        if find_identity(self._path) != self._identity:
            reason = "it was removed or replaced while its broker had it open"
            raise StoreUnavailable(self._place, reason)

    def is_wanted(self) -> bool:
        """Whether somebody waits who uses the file directly, or its log should be written."""
        return self._shared.is_wanted()

    def busy(self, waited: float) -> StoreBusy:
        """The error that names who holds the file."""
        return self._shared.busy(waited)

    def snapshot(self) -> SharedSnapshot:
        """What is committed now; give it back with `release`."""
        if self._snapshot is None:
            self._snapshot = SharedSnapshot(self._require_open().cursor.cursor())
        self._snapshot.users += 1
        return self._snapshot

    def release(self, snapshot: SharedSnapshot) -> None:
        """End a use of a snapshot; the last use of an outdated one closes it."""
        snapshot.users -= 1
        if not snapshot.users and snapshot is not self._snapshot:
            snapshot.cursor.close()

    def outdate_snapshot(self) -> None:
        """Let the next reader see what is committed by then."""
        snapshot, self._snapshot = self._snapshot, None
        if snapshot is not None and not snapshot.users:
            snapshot.cursor.close()

    def current_cursor(self) -> duckdb.DuckDBPyConnection:
        """A cursor that sees all that is committed now, until the next commit."""
        snapshot = self.snapshot()
        snapshot.users -= 1  # the loop does nothing else meanwhile
        return snapshot.cursor

    def start_writing(self, statements: Sequence[Statement], note: str) -> Future[None]:
        """Begin `write` in the thread of this file, which then wakes the loop."""
        writing = self._executor.submit(self.write, statements, note)
        writing.add_done_callback(lambda _: self._wake())
        return writing

    def write(self, statements: Sequence[Statement], note: str) -> None:
        """Run statements in one transaction and make it durable; `note` names the last commit.

        Call `outdate_snapshot` after it. Raises duckdb.Error, after which only `undo` or `close`
        helps.
        """
        attachment = self._require_open()
        self.require_same_file()
        attachment.make_log()
        execute(attachment.cursor, "BEGIN")
        self._is_writing = True
        for each in statements:
            rows = fetch(attachment.cursor, each.sql, each.parameters)
            if each.rows is not None and rows != [(each.rows,)]:
                raise StoreUnavailable(self._place, "a row was not there that was to be replaced")
        execute(attachment.cursor, "COMMIT")
        self._is_writing = False
        attachment.acknowledge(note)

    def shorten_log(self) -> None:
        """Write the log into the file if it has become long; no transaction may run.

        Whoever opens the file after a crash reads the log first, and everybody waits for that.
        Raises duckdb.Error, after which only `close` helps, and OSError.
        """
        if self._shared.log_size() > LONG_LOG:
            self.outdate_snapshot()
            self._require_open().checkpoint()

    def undo(self) -> None:
        """End the transaction of a `write` that failed, if it has not ended."""
        if self._is_writing:
            execute(self._require_open().cursor, "ROLLBACK")
            self._is_writing = False

    def close(self, error: BaseException | None = None) -> None:
        """End the use of the file: it lingers, or is released if somebody waits.

        What is not committed is undone. After an `error` the file is opened anew for the next use.
        """
        self.outdate_snapshot()
        opened, self._opened, self._attachment = self._opened, None, None
        self._is_writing = False
        if opened is not None:
            _leave(opened, error)

    def end(self) -> None:
        """Close the file for good."""
        self.close()
        opening, self._opening = self._opening, None
        self._executor.shutdown(wait=True)
        if opening is not None and opening.exception() is None:
            _leave(opening.result()[0], None)
        self._shared.close()

    def _require_open(self) -> Attachment:
        if self._attachment is None:
            raise RuntimeError("the file is not open")
        return self._attachment


def fetch(
    cursor: duckdb.DuckDBPyConnection, sql: str, parameters: Sequence[Any]
) -> list[tuple[Any, ...]]:
    """The rows of a statement."""
    return execute(cursor, sql, parameters).fetchall()


def identity_of(status: os.stat_result) -> tuple[int, int]:
    """What distinguishes a file from any other that exists at the same time."""
    return status.st_dev, status.st_ino


def find_identity(path: Path) -> tuple[int, int] | None:
    """The identity of the file at a path; None if there is none."""
    try:
        return identity_of(path.stat())
    except OSError:
        return None


def _leave(opened: Opened, error: BaseException | None) -> None:
    """Leave a use of the file as its `with` would."""
    try:
        opened.__exit__(None if error is None else type(error), error, None)
    except (HerdbookError, duckdb.Error) as again:
        if again is not error:
            _LOG.warning("the file could not be closed cleanly: %s", again)
