"""DuckDB itself: an instance in memory to which the database file is attached while it is used.

An instance costs 15 ms and 4 MB, attaching and detaching half a millisecond. Each file has its own
instance, because a fatal error (a failed fsync) makes everything unusable that is attached to the
same instance.
"""

import ctypes
import logging
import os
from collections.abc import Iterable
from pathlib import Path

import duckdb

from herdbook.adapters.duckdb import file_checks, rollback_journal
from herdbook.adapters.duckdb.errors import translate_errors
from herdbook.adapters.duckdb.instance import open_instance, quote_text

CATALOG = "herdbook"

_TO_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC

_LOG = logging.getLogger(__name__)


class DatabaseInstance:
    """The DuckDB instance of one file. One thread at a time changes it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._instance: duckdb.DuckDBPyConnection | None = None
        self._written: Path | None = None  # the file that is attached to be written
        self._descriptor: int | None = None  # of that file
        self.attached = False

    def start(self) -> None:
        """Create the instance, which takes far longer than anybody should hold a lock."""
        if self._instance is None:
            with translate_errors(str(self._path)):
                self._instance = open_instance(
                    file_checks.allowed_paths(self._path),
                    spill=str(file_checks.spill_path(self._path)),
                )

    def attach(self, path: Path, *, write: bool) -> None:
        """Attach the file. With its type given, DuckDB reads its headers under its own lock."""
        if self._instance is None:
            raise RuntimeError("the instance was not started")
        with translate_errors(str(self._path)):
            options = (
                f"TYPE duckdb, BLOCK_SIZE {rollback_journal.BLOCK}{'' if write else ', READ_ONLY'}"
            )
            self.attached = True  # before it is: an interrupt must not leave it attached unnoticed
            try:
                if write:
                    self._written = path
                    # Opened before DuckDB opens it and closed after: closing it in between would
                    # drop DuckDB's own lock.
                    self._descriptor = os.open(path, _TO_READ) if path.exists() else None
                self._instance.execute(f"ATTACH {quote_text(str(path))} AS {CATALOG} ({options})")
            except (duckdb.Error, OSError):
                self.attached = False
                self._close_descriptor()
                raise

    def cursor(self) -> duckdb.DuckDBPyConnection:
        """A new connection with a transaction of its own."""
        if self._instance is None:
            raise RuntimeError("the instance was not started")
        with translate_errors(str(self._path)):
            return self._instance.cursor()

    def checkpoint(self) -> None:
        """Write the log into the file, after saving the blocks that restore it if that is cut off.

        No transaction may be open. Raises duckdb.Error, after which only `drop` helps, and OSError,
        after which nothing has happened.
        """
        if self._instance is None or self._written is None:
            raise RuntimeError("nothing is attached to be written")
        # A new file has nothing to restore yet; it is moved to its place when it is whole.
        if self._descriptor is not None:
            found = self._instance.execute(
                f"SELECT block_id FROM pragma_metadata_info('{CATALOG}')"
            )
            numbers = sorted(number for (number,) in found.fetchall())
            rollback_journal.save_blocks(self._written, self._descriptor, numbers)
        self._instance.execute(f"CHECKPOINT {CATALOG}")
        if self._descriptor is not None:
            rollback_journal.discard(self._written)

    def is_replaced(self) -> bool:
        """Whether the file that is attached to be written was removed, or moved away."""
        if self._descriptor is None or self._written is None:
            return False
        try:
            there = self._written.stat()
        except OSError:
            return True
        return not os.path.samestat(os.fstat(self._descriptor), there)

    def detach(self) -> duckdb.Error | OSError | None:
        """Close the file in any case; returns why its log was not written into it first, if so.

        All cursors must be closed: after a detach DuckDB keeps a file open as long as any
        transaction on it is. A log that could not be written into the file is no loss: it stays
        beside the file, and the next process that attaches it reads it.
        """
        if not self.attached or self._instance is None:
            return None
        try:
            if self._written is not None and file_checks.wal_path(self._written).exists():
                self.checkpoint()
            self._instance.execute(f"DETACH DATABASE IF EXISTS {CATALOG}")
        except (duckdb.Error, OSError) as error:
            self.drop()
            return error
        self.attached = False
        self._close_descriptor()
        return None

    def drop(self) -> None:
        """Close the instance, whatever state it is in, and with it everything it has open."""
        instance, self._instance, self.attached = self._instance, None, False
        try:
            if instance is not None:
                instance.close()
        except duckdb.Error as error:
            _LOG.warning("DuckDB complained when %s was closed: %s", self._path, error)
        finally:
            self._close_descriptor()

    def abandon(self, cursors: Iterable[duckdb.DuckDBPyConnection]) -> None:
        """In a forked child: never touch the parent's instance again, not even to destroy it.

        Destroying it would write the parent's log into its file and remove the log under it.
        """
        if self.attached and self._instance is not None:
            for each in (self._instance, *cursors):
                ctypes.pythonapi.Py_IncRef(ctypes.py_object(each))
        self._instance, self.attached = None, False
        self._close_descriptor()

    def _close_descriptor(self) -> None:
        """Close our own descriptor of the file, which DuckDB has closed by now."""
        descriptor, self._descriptor, self._written = self._descriptor, None, None
        if descriptor is not None:
            os.close(descriptor)
