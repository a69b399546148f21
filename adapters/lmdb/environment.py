"""One LMDB environment per folder and process: opened, checked, shared, and safe to fork.

It is open for reading until this process first writes (see `open_databases`), so that a reader
never waits for a writer, not even for a writer that was stopped.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import lmdb

from herdbook.adapters.lmdb import files
from herdbook.adapters.lmdb.data_file_guard import DataFileGuard
from herdbook.adapters.lmdb.errors import translate_error
from herdbook.adapters.lmdb.open_databases import OpenDatabases
from herdbook.adapters.lmdb.preallocate import Preallocator
from herdbook.adapters.lmdb.transactions import ReadTransaction, WriteTransaction
from herdbook.domain.errors import StoreBusy, StoreUnavailable

_NESTED = "this thread reads in it and cannot begin to write: transactions do not nest"


class LmdbEnvironment:
    """A folder with an LMDB database in it, as this process uses it.

    It is closed before a fork and opened again on the next use on either side of the fork, because
    an open environment must not cross one. If the forking thread is itself in a transaction, the
    parent continues it and the child cannot use the folder.
    """

    def __init__(self, folder: Path, size_limit: int, patience: float) -> None:
        self.folder = folder
        self.place = str(folder)
        self.patience = patience
        self.users = 0
        self.guard = DataFileGuard(folder)
        self.open_databases = OpenDatabases(folder, size_limit)
        self._idle = threading.Condition()
        self._running: dict[int, int] = {}
        self._resizing: set[int] = set()
        self._closing = 0
        self._writer = threading.Lock()
        self.naming = threading.Lock()  # held while databases are opened by name
        self._may_create = False
        self._stranded = False
        self._retired = False
        self._preallocator = Preallocator(folder / files.DATA, size_limit)

    def open(self, *, create: bool, verify: bool = False) -> None:
        """Open the folder, and create it if `create` allows that; refuse a damaged or foreign one.

        Only the headers are read here. With `verify` all pages are verified first.
        """
        with self._idle:
            self._may_create = create
            if self.open_databases.env is None:
                self._open(create=create)
        if verify:
            self.verify()

    def _open(self, *, create: bool) -> None:
        if not files.holds_store(self.folder, create=create):
            with self.guard.hold_unopened(self.patience) as hold:
                if not files.holds_store(self.folder, create=True):
                    files.make_files(self.folder)
                    self._load(writable=True)
                    self.guard.record_left(hold)
                    return
        self.guard.verify_if_unknown(self.patience)
        self._load(writable=False)

    def _load(self, *, writable: bool) -> None:
        try:
            self.open_databases.load(writable=writable)
            self.guard.remember_file()
        except BaseException:
            self.open_databases.unload()
            raise

    @property
    def databases(self) -> dict[str, Any]:
        """The open databases, by name."""
        return self.open_databases.databases

    @property
    def is_new(self) -> bool:
        """Whether this process has created the folder's files and they are known to be empty."""
        return self.open_databases.writable and not self.open_databases.databases

    def find_databases(self, names: tuple[str, ...]) -> bool:
        """Open those of the named databases that exist; whether all of them do.

        Called by one thread at a time, which holds `naming`. Never takes LMDB's writer lock: in a
        folder that is open for writing, databases are either open already or still to be created.
        """
        with self._idle:
            self.open_databases.names = names
            if self.open_databases.env is None:
                self._open(create=self._may_create)
            if not self.open_databases.writable:
                self.open_databases.find()
            return len(self.open_databases.databases) == len(names)

    @contextmanager
    def create_databases(self) -> Iterator[tuple[Any, dict[str, Any]]]:
        """Run a write transaction with all databases, creating those that are missing.

        They last if the transaction is committed. Called by one thread at a time, which holds
        `naming`.
        """
        with self.transaction(write=True) as txn:
            made = self.open_databases.create(txn)
            yield txn, made
            self.open_databases.databases = made

    def verify(self) -> None:
        """Raise StoreDamaged if the pages do not fit together; nobody has to wait for that.

        The pages of the last commit stay unchanged while a reader may need them, and this is a
        reader meanwhile. A commit between the reading of the two headers can still make the
        verifier report damage that is not there; so what it finds while others write is verified
        again.
        """
        for insist in (False, False, True):
            with self.transaction(write=False):
                if self.guard.verify(insist=insist):
                    return

    def transaction(
        self, *, write: bool, patience: float | None = None
    ) -> AbstractContextManager[Any]:
        """Run an LMDB transaction; rolled back unless it was committed.

        A writer waits in turn for up to `patience` seconds and then raises StoreBusy. A reader
        waits for nobody. Raises StoreUnavailable if the file was removed or replaced.
        """
        if not write:
            return ReadTransaction(self)
        patience = self.patience if patience is None else patience
        return WriteTransaction(self, self._writer, patience)

    def enter(self, write_until: float | None) -> None:
        """Admit a transaction of this thread: a reader, or a writer if `write_until` is given."""
        with self._idle:
            self._refuse_if_unusable()
            if self._closing:
                self._idle.wait_for(lambda: not self._closing)
            if write_until is not None and not self.open_databases.writable:
                self._reload_to_write(write_until)
            if self.open_databases.env is None:
                self._open(create=False)
                self.open_databases.find()
            me = threading.get_ident()
            self._running[me] = self._running.get(me, 0) + 1

    def _reload_to_write(self, until: float) -> None:
        """Reopen the folder for writing as soon as no thread of this process reads in it."""
        if threading.get_ident() in self._running:
            raise RuntimeError(f"{self.place}: {_NESTED}")
        self._closing += 1
        try:
            wait = max(until - time.monotonic(), 0.0)
            if not self._idle.wait_for(lambda: not self._running, wait):
                reader = "a thread of this process, which reads"
                raise StoreBusy(self.place, self.patience, reader)
            files.holds_store(self.folder, create=True)
            self.open_databases.unload()
            self._load(writable=True)
            self.open_databases.find()
        finally:
            self._closing -= 1
            self._idle.notify_all()

    def _refuse_if_unusable(self) -> None:
        if self._retired:
            raise self.guard.gone_error()
        if self._stranded:
            reason = "this process was forked inside a transaction on it; start a new one"
            raise StoreUnavailable(self.place, reason)

    def leave(self) -> None:
        """Record that a transaction of this thread has ended."""
        with self._idle:
            me = threading.get_ident()
            self._running[me] -= 1
            if not self._running[me]:
                del self._running[me]
            if self._closing or self._resizing:
                self._idle.notify_all()

    def begin(self, *, write: bool) -> Any:
        """Begin an LMDB transaction; the caller was admitted by `enter`."""
        if not write:
            self.guard.require_same_file_for_reading()
        deadline = time.monotonic() + self.patience
        while time.monotonic() < deadline:
            try:
                txn = self.open_databases.env.begin(write=write)
            except lmdb.MapResizedError:
                self._adopt_map_size()
            except lmdb.ReadersFullError:
                self.open_databases.env.reader_check()
                time.sleep(0.01)
            except lmdb.Error as error:
                raise translate_error(error, self.place) from error
            else:
                if write:
                    kept = (
                        self.open_databases.env.info()["last_pgno"] + 1
                    ) * self.open_databases.page_size
                    self._preallocator.extend(kept)
                return txn
        raise StoreBusy(self.place, self.patience, "more readers than it has room for")

    def _adopt_map_size(self) -> None:
        """Adopt the larger map of another process, as soon as no thread is in a transaction."""
        me = threading.get_ident()
        with self._idle:
            self._resizing.add(me)
            if self._running.keys() <= self._resizing:
                self.open_databases.env.set_mapsize(0)
            else:
                self._idle.wait(0.05)
            self._resizing.discard(me)

    def is_replaced(self) -> bool:
        """Whether the folder now holds another file than the one that is open here."""
        return self.open_databases.env is not None and self.guard.is_replaced()

    def retire(self) -> bool:
        """Close the folder for good, because another store is there now; False if that must wait.

        Later uses of this environment raise StoreUnavailable.
        """
        with self._idle:
            self._closing += 1
            try:
                if not self._idle.wait_for(lambda: not self._running, self.patience):
                    return False
            finally:
                self._closing -= 1
                self._idle.notify_all()
            self._retired = True
            self.open_databases.unload()
            self.guard.close()
            return True

    def close(self) -> None:
        """Close the folder."""
        with self._idle:
            if self._stranded:
                self.open_databases.env = None
            self.open_databases.unload()
            self.guard.close()

    def before_fork(self) -> None:
        """Wait for other threads' transactions and close, unless this thread is in one.

        A thread may be on its way from one folder into another that already waits here. So this
        wait ends after `patience` seconds, and the child then cannot use the folder.
        """
        self._idle.acquire()
        self._closing += 1
        if threading.get_ident() in self._running:
            return
        if self._idle.wait_for(lambda: not self._running, self.patience):
            self.open_databases.unload()

    def after_fork_in_parent(self) -> None:
        """Continue; the next transaction opens the folder again."""
        self._closing -= 1
        self._idle.notify_all()
        self._idle.release()

    def after_fork_in_child(self) -> None:
        """Start without the parent's threads, locks and transactions."""
        self._stranded = self.open_databases.env is not None
        self._idle = threading.Condition()
        self._writer = threading.Lock()
        self.naming = threading.Lock()
        self._running = {}
        self._resizing = set()
        self._closing = 0
        self.guard.forget_inherited()
