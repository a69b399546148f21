"""One LMDB environment per folder and process: opened, checked, shared, and safe to fork.

It is open for reading until this process first writes (see `OpenDatabases`), so that a reader
never waits for a writer, not even for a writer that was stopped.
"""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import lmdb

from herdbook.adapters.lmdb import files
from herdbook.adapters.lmdb.data_file_guard import DataFileGuard
from herdbook.adapters.lmdb.errors import translate_error
from herdbook.adapters.system.os_errors import translate_os_errors
from herdbook.domain.errors import StoreBusy, StoreDamaged, StoreUnavailable

_NESTED = "this thread reads in it and cannot begin to write: transactions do not nest"


class OpenDatabases:
    """The folder as LMDB has it open, or not; one thread at a time changes that.

    Handles of databases last only if LMDB created them in a committed transaction, and py-lmdb
    commits a read transaction only in a read-only environment. So a process that has not written
    yet has the folder open for reading: its handles last, and it has not taken LMDB's writer lock
    to get them.
    """

    def __init__(self, folder: Path, size_limit: int) -> None:
        self._folder = folder
        self._place = str(folder)
        self._size_limit = size_limit
        self.env: Any = None
        self.writable = False
        self.page_size = 0
        self.names: tuple[str, ...] = ()
        self.databases: dict[str, Any] = {}

    def load(self, *, writable: bool) -> None:
        """Open the folder. Of the pages only the headers are read."""
        with translate_os_errors(self._place):
            try:
                self.env = lmdb.open(
                    self._place,
                    map_size=self._size_limit,
                    max_dbs=8,
                    max_readers=files.MAX_READERS,
                    mode=0o600,
                    create=writable,
                    readonly=not writable,
                )
                self.writable = writable
                self.databases = {}
                self.page_size = self.env.stat()["psize"]
            except lmdb.Error as error:
                raise translate_error(error, self._place) from error

    def unload(self) -> None:
        """Close the folder, if it is open."""
        if self.env is not None:
            self.env.close()
        self.env, self.writable = None, False

    def find(self) -> None:
        """Get lasting handles of the databases that exist.

        In a folder that is open for writing this takes LMDB's writer lock for a moment.
        """
        try:
            for name in self.names:
                if name not in self.databases:
                    with suppress(lmdb.NotFoundError):
                        found = self.env.open_db(name.encode(), create=False)
                        self._require_plain_database(found)
                        self.databases[name] = found
        except lmdb.Error as error:
            raise translate_error(error, self._place) from error

    def create(self, txn: Any) -> dict[str, Any]:
        """Open all databases, creating missing ones; they last if the transaction is committed."""
        made = {name: self.env.open_db(name.encode(), txn=txn) for name in self.names}
        for each in made.values():
            self._require_plain_database(each)
        return made

    def _require_plain_database(self, database: Any) -> None:
        """Refuse a database with other flags than ours: LMDB would use it differently."""
        if any(database.flags().values()):
            reason = "a database in it is of a kind that Herdbook never makes"
            raise StoreDamaged(str(self._folder / files.DATA), reason)


LEAST, MOST = 1 << 17, 1 << 22
"""The bounds of a step, in bytes; a step is a sixteenth of what the file holds."""
SCARCE = 1 << 15
"""The next step is due with fewer bytes than this left; most commits need fewer."""


class Preallocator:
    """Extends the data file of one environment, so that commits rarely do, and knows its size.

    To sync a file that has grown also syncs the file system's metadata, which takes longer. So the
    file grows in steps, by zeros after its end, during a write transaction: nobody else writes
    meanwhile, and LMDB does not read past the last page that it has written.
    """

    def __init__(self, data: Path, limit: int) -> None:
        self._data = data
        self._limit = limit
        self._size = 0

    def extend(self, kept: int) -> None:
        """Extend the file if it ends soon after the `kept` bytes; only in a write transaction.

        A full disk or a reached size limit raises nothing here: the commit that needs the space
        reports it.
        """
        if self._size - kept >= SCARCE:
            return
        self._size = self._data.stat().st_size
        step = min(max(kept // 16, LEAST), MOST, self._limit - self._size)
        if self._size - kept >= SCARCE or step <= 0:
            return
        with suppress(OSError):
            descriptor = os.open(self._data, os.O_WRONLY | os.O_CLOEXEC)
            try:
                self._size += os.pwrite(descriptor, bytes(step), self._size)
            finally:
                os.close(descriptor)


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
            self.guard.require_same_file(write=False)
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


class ReadTransaction(AbstractContextManager[Any]):
    """Reads the last committed state; waits for nobody.

    A class and not a generator: it is entered thousands of times, and that is twice as fast. A
    child that was forked inside the block leaves it without any effect: the transaction, its slot
    among the readers and the lock are its parent's.
    """

    def __init__(self, environment: LmdbEnvironment) -> None:
        self._environment = environment
        self._pid = os.getpid()
        self._txn: Any = None

    def __enter__(self) -> Any:
        self._begin(None)
        return self._txn

    def __exit__(
        self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None
    ) -> None:
        if os.getpid() == self._pid:
            try:
                # After a commit this does nothing.
                self._txn.abort()
            finally:
                self._txn = None
                self._environment.leave()
        if isinstance(error, lmdb.Error):
            raise translate_error(error, self._environment.place) from error

    def _begin(self, write_until: float | None) -> None:
        self._environment.enter(write_until)
        try:
            self._txn = self._environment.begin(write=write_until is not None)
        except BaseException:
            self._environment.leave()
            raise


class WriteTransaction(ReadTransaction):
    """The one transaction that writes, among all processes.

    Waits in turn for up to `patience` seconds: first for other threads, which hold `writer`, then
    for other processes. Raises StoreBusy after that.
    """

    def __init__(
        self, environment: LmdbEnvironment, writer: threading.Lock, patience: float
    ) -> None:
        super().__init__(environment)
        self._writer = writer
        self._patience = patience
        self._hold: Any = None

    def __enter__(self) -> Any:
        environment, until = self._environment, time.monotonic() + self._patience
        if not self._writer.acquire(timeout=self._patience):
            raise StoreBusy(environment.place, self._patience, "a thread of this process")
        try:
            self._hold = environment.guard.take(until - time.monotonic())
            self._begin(until)
        except BaseException as error:
            self._release(error)
            raise
        return self._txn

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            super().__exit__(kind, error, trace)
        except BaseException as translated:
            error = translated
            raise
        finally:
            self._release(error)

    def _release(self, error: BaseException | None) -> None:
        if os.getpid() != self._pid:
            return
        try:
            if self._hold is not None:
                clean = not isinstance(error, StoreDamaged)
                self._environment.guard.release_hold(self._hold, clean=clean)
        finally:
            self._writer.release()
