"""DuckDB itself: an instance in memory to which the database file is attached while it is used.

An instance costs 15 ms and 4 MB, attaching and detaching half a millisecond. Each file has an
instance of its own, because a fatal error (a failed fsync) makes all that is attached to the same
instance unusable.
"""

import ctypes
import logging
from collections.abc import Iterable
from pathlib import Path

import duckdb

from herdbook.adapters.duckdb import place
from herdbook.adapters.duckdb.errors import translating
from herdbook.adapters.duckdb.instance import open_instance

CATALOG = "herdbook"

_LOG = logging.getLogger(__name__)


class Engine:
    """The instance of one file. One thread at a time changes it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._instance: duckdb.DuckDBPyConnection | None = None
        self.attached = False

    def start(self) -> None:
        """Make the instance, which takes far longer than anybody should hold a lock."""
        if self._instance is None:
            with translating(str(self._path)):
                self._instance = open_instance(
                    place.paths_of(self._path), spill=str(place.spill(self._path))
                )

    def attach(self, path: Path, *, write: bool) -> None:
        """Open the file. With its type stated, DuckDB reads its headers under its own lock."""
        if self._instance is None:
            raise RuntimeError("the instance was not started")
        with translating(str(self._path)):
            quoted = str(path).replace("'", "''")
            mode = "" if write else ", READ_ONLY"
            self.attached = True  # before it is, so that an interrupt does not leave it so unseen
            try:
                self._instance.execute(f"ATTACH '{quoted}' AS {CATALOG} (TYPE duckdb{mode})")
            except duckdb.Error:
                self.attached = False
                raise

    def cursor(self) -> duckdb.DuckDBPyConnection:
        """A connection of its own, with a transaction of its own."""
        if self._instance is None:
            raise RuntimeError("the instance was not started")
        with translating(str(self._path)):
            return self._instance.cursor()

    def detach(self) -> duckdb.Error | None:
        """Close the file, for certain; why its log was not written into it first, if it was not.

        All cursors must be closed: DuckDB keeps a file open behind a detach as long as any
        transaction on it is. That the log could not be written in is no loss: it stays beside the
        file, and whoever attaches next reads it.
        """
        if not self.attached or self._instance is None:
            return None
        try:
            self._instance.execute(f"DETACH DATABASE IF EXISTS {CATALOG}")
        except duckdb.Error as error:
            self.drop()
            return error
        self.attached = False
        return None

    def drop(self) -> None:
        """End the instance, whatever state it is in, and with it everything it has open."""
        instance, self._instance, self.attached = self._instance, None, False
        if instance is None:
            return
        try:
            instance.close()
        except duckdb.Error as error:
            _LOG.warning("DuckDB complained when %s was closed: %s", self._path, error)

    def abandon(self, cursors: Iterable[duckdb.DuckDBPyConnection]) -> None:
        """In a forked child: never touch the parent's instance again, not even to destroy it.

        Destroying it would write the parent's log into its file and remove the log under it.
        """
        if self.attached and self._instance is not None:
            for each in (self._instance, *cursors):
                ctypes.pythonapi.Py_IncRef(ctypes.py_object(each))
        self._instance, self.attached = None, False
