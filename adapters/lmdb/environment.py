"""One LMDB environment per folder and process: opened, checked, shared, and safe to fork.

It is open for reading until this process first writes (see `loading`), so that a reader never waits
for a writer, not even for one that was stopped.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import lmdb

from herdbook.adapters.lmdb import files
from herdbook.adapters.lmdb.data_file_guard import FileGuard
from herdbook.adapters.lmdb.errors import translate_error
from herdbook.adapters.lmdb.open_databases import LoadedFolder
from herdbook.adapters.lmdb.preallocate import Room
from herdbook.adapters.lmdb.transactions import ReadTransaction, WriteTransaction
from herdbook.domain.errors import StoreBusy, StoreUnavailable

_NESTED = "this thread reads in it and cannot begin to write: transactions do not nest"


class Environment:
    """A folder with an LMDB database in it, as this process sees it.

    Closed before a fork and opened again on the next use on either side of it, because an open
    environment must not cross one. Where the forking thread is itself in a transaction, the parent
    goes on with it and the child cannot use the folder.
    """

    def __init__(self, folder: Path, size_limit: int, patience: float) -> None:
        self.folder = folder
        self.place = str(folder)
        self.patience = patience
        self.users = 0
        self.guard = FileGuard(folder)
        self.loaded = LoadedFolder(folder, size_limit)
        self._idle = threading.Condition()
        self._running: dict[int, int] = {}
        self._resizing: set[int] = set()
        self._closing = 0
        self._writer = threading.Lock()
        self.naming = threading.Lock()  # held by whoever finds databases by their names
        self._may_create = False
        self._stranded = False
        self._retired = False
        self._room = Room(folder / files.DATA, size_limit)

    def open(self, *, create: bool, verify: bool = False) -> None:
        """Open the folder, made if it may be; refuse what is damaged or not ours.

        No page but the headers is read here. `verify` has all of them verified first.
        """
        with self._idle:
            self._may_create = create
            if self.loaded.env is None:
                self._open(create=create)
        if verify:
            self.verify()

    def _open(self, *, create: bool) -> None:
        if not files.holds_store(self.folder, create=create):
            with self.guard.holding(self.patience) as hold:
                if not files.holds_store(self.folder, create=True):
                    files.make_files(self.folder)
                    self._load(writable=True)
                    self.guard.note_left(hold)
                    return
        self.guard.settle(self.patience)
        self._load(writable=False)

    def _load(self, *, writable: bool) -> None:
        try:
            self.loaded.load(writable=writable)
            self.guard.recognize()
        except BaseException:
            self.loaded.unload()
            raise

    @property
    def databases(self) -> dict[str, Any]:
        """The databases at hand, by their names."""
        return self.loaded.databases

    @property
    def is_new(self) -> bool:
        """Whether this process has made the folder's files and nothing is known to be in them."""
        return self.loaded.writable and not self.loaded.databases

    def find_databases(self, names: tuple[str, ...]) -> bool:
        """Have the named databases at hand as far as they are there; whether all of them are.

        Only by one thread at a time, which holds `naming`. Never takes the writer's place: in a
        folder that is open for writing, they are at hand already or still to be made.
        """
        with self._idle:
            self.loaded.names = names
            if self.loaded.env is None:
                self._open(create=self._may_create)
            if not self.loaded.writable:
                self.loaded.find()
            return len(self.loaded.databases) == len(names)

    @contextmanager
    def making_databases(self) -> Iterator[tuple[Any, dict[str, Any]]]:
        """Run a write transaction with all databases, those that are missing made in it.

        They last if it is committed. Only by one thread at a time, which holds `naming`.
        """
        with self.transaction(write=True) as txn:
            made = self.loaded.make(txn)
            yield txn, made
            self.loaded.databases = made

    def verify(self) -> None:
        """Raise StoreDamaged if the pages do not fit together; nobody has to wait for that.

        The pages of the last commit stay as they are while a reader, which this is meanwhile, may
        want them. A commit between the reading of the two headers may still make the verifier see
        what is not there; so what it finds while others write is looked at again.
        """
        for insist in (False, False, True):
            with self.transaction(write=False):
                if self.guard.verify(insist=insist):
                    return

    def transaction(
        self, *, write: bool, patience: float | None = None
    ) -> AbstractContextManager[Any]:
        """Run an LMDB transaction; undone unless it was committed.

        To write, it waits in turn for up to `patience` seconds and then raises StoreBusy. To read,
        it waits for nobody. Raises StoreUnavailable if the file was removed or replaced.
        """
        if not write:
            return ReadTransaction(self)
        patience = self.patience if patience is None else patience
        return WriteTransaction(self, self._writer, patience)

    def enter(self, write_until: float | None) -> None:
        """Let a transaction of this thread in: to read, or to write if that is until a time."""
        with self._idle:
            self._refuse_if_unusable()
            if self._closing:
                self._idle.wait_for(lambda: not self._closing)
            if write_until is not None and not self.loaded.writable:
                self._reload_to_write(write_until)
            if self.loaded.env is None:
                self._open(create=False)
                self.loaded.find()
            me = threading.get_ident()
            self._running[me] = self._running.get(me, 0) + 1

    def _reload_to_write(self, until: float) -> None:
        """Open the folder for writing instead, as soon as no thread of this process reads in it."""
        if threading.get_ident() in self._running:
            raise RuntimeError(f"{self.place}: {_NESTED}")
        self._closing += 1
        try:
            wait = max(until - time.monotonic(), 0.0)
            if not self._idle.wait_for(lambda: not self._running, wait):
                reader = "a thread of this process, which reads"
                raise StoreBusy(self.place, self.patience, reader)
            files.holds_store(self.folder, create=True)
            self.loaded.unload()
            self._load(writable=True)
            self.loaded.find()
        finally:
            self._closing -= 1
            self._idle.notify_all()

    def _refuse_if_unusable(self) -> None:
        if self._retired:
            raise self.guard.gone()
        if self._stranded:
            reason = "this process was forked inside a transaction on it; start a new one"
            raise StoreUnavailable(self.place, reason)

    def leave(self) -> None:
        """Note that a transaction of this thread has ended."""
        with self._idle:
            me = threading.get_ident()
            self._running[me] -= 1
            if not self._running[me]:
                del self._running[me]
            if self._closing or self._resizing:
                self._idle.notify_all()

    def begin(self, *, write: bool) -> Any:
        """Begin a transaction of LMDB, inside."""
        if not write:
            self.guard.require_same_file_to_read()
        deadline = time.monotonic() + self.patience
        while time.monotonic() < deadline:
            try:
                txn = self.loaded.env.begin(write=write)
            except lmdb.MapResizedError:
                self._take_over_size()
            except lmdb.ReadersFullError:
                self.loaded.env.reader_check()
                time.sleep(0.01)
            except lmdb.Error as error:
                raise translate_error(error, self.place) from error
            else:
                if write:
                    kept = (self.loaded.env.info()["last_pgno"] + 1) * self.loaded.page_size
                    self._room.make(kept)
                return txn
        raise StoreBusy(self.place, self.patience, "more readers than it has room for")

    def _take_over_size(self) -> None:
        """Work with the larger map that another process has, as soon as no thread is inside."""
        me = threading.get_ident()
        with self._idle:
            self._resizing.add(me)
            if self._running.keys() <= self._resizing:
                self.loaded.env.set_mapsize(0)
            else:
                self._idle.wait(0.05)
            self._resizing.discard(me)

    def is_replaced(self) -> bool:
        """Whether the folder holds another file now than the one that is open here."""
        return self.loaded.env is not None and self.guard.is_replaced()

    def retire(self) -> bool:
        """Close the folder for good, for another store lies there now; False if that must wait.

        Whoever still uses this one is told that it is gone.
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
            self.loaded.unload()
            self.guard.close()
            return True

    def close(self) -> None:
        """Let go of the folder."""
        with self._idle:
            if self._stranded:
                self.loaded.env = None
            self.loaded.unload()
            self.guard.close()

    def before_fork(self) -> None:
        """Wait for other threads' transactions and close, unless this thread is in one.

        A thread may be on its way from one folder into another that waits here already; so this
        ends with our patience, and the child is left without the folder.
        """
        self._idle.acquire()
        self._closing += 1
        if threading.get_ident() in self._running:
            return
        if self._idle.wait_for(lambda: not self._running, self.patience):
            self.loaded.unload()

    def after_fork_in_parent(self) -> None:
        """Go on; the next transaction opens the folder again."""
        self._closing -= 1
        self._idle.notify_all()
        self._idle.release()

    def after_fork_in_child(self) -> None:
        """Begin anew, without the parent's threads, locks and transactions."""
        self._stranded = self.loaded.env is not None
        self._idle = threading.Condition()
        self._writer = threading.Lock()
        self.naming = threading.Lock()
        self._running = {}
        self._resizing = set()
        self._closing = 0
        self.guard.forget_inherited()
