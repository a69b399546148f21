"""One LMDB environment per folder and process: opened, checked, shared, and safe to fork."""

import errno
import json
import os
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import lmdb

from herdbook.domain.errors import (
    HerdbookError,
    StoreBusy,
    StoreDamaged,
    StoreFull,
    StoreUnavailable,
)

DATA, LOCK, SENTINEL = "data.mdb", "lock.mdb", "herdbook.json"
MAX_READERS = 2_048
_META = struct.Struct("<QHHHHII QQ 48s48s QQ")
_MAGIC = 0xBEEFC0DE
_FULL = {errno.ENOSPC, errno.EFBIG, errno.EDQUOT}


def translated(error: lmdb.Error, place: str) -> HerdbookError:
    """LMDB's errors as ours; the one place that knows them."""
    code = error.args[0] if error.args else ""
    match error:
        case lmdb.MapFullError():
            return StoreFull(place, "it has reached its size limit; a larger one can be configured")
        case (
            lmdb.CorruptedError()
            | lmdb.PageNotFoundError()
            | lmdb.PanicError()
            | lmdb.InvalidError()
            | lmdb.VersionMismatchError()
        ):
            return StoreDamaged(place, f"LMDB says {code}")
        case lmdb.ReadersFullError():
            return StoreUnavailable(place, "more processes read it at once than it has room for")
        case _ if any(os.strerror(number) in str(error) for number in _FULL):
            return StoreFull(place, "there is no space left on its disk")
        case lmdb.DiskError():
            return StoreFull(place, "its disk refused to write")
        case _:
            return StoreUnavailable(place, f"LMDB says {code}")


class Environment:
    """A folder with an LMDB database in it, as this process sees it.

    Closed before a fork and opened again on the next use on either side of it, because an open
    environment must not cross one. Where the forking thread is itself in a transaction, the parent
    goes on with it and the child cannot use the folder.
    """

    def __init__(self, folder: Path, size_limit: int, patience: float) -> None:
        self.folder = folder
        self.place = str(folder)
        self.size_limit = size_limit
        self.patience = patience
        self.users = 0
        self._idle = threading.Condition()
        self._running: dict[int, int] = {}
        self._closing = False
        self._writer = threading.Lock()
        self._env: Any = None
        self._stranded = False
        self.databases: dict[str, Any] = {}

    def open(self, *, create: bool) -> None:
        """Open the folder, made if it may be; refuse what is damaged or not ours."""
        with self._idle:
            if self._env is None:
                self._prepare(create=create)
                self._open()

    def _prepare(self, *, create: bool) -> None:
        folder, place = self.folder, self.place
        try:
            if not folder.exists() and create:
                _make(folder)
            names = {each.name for each in folder.iterdir()}
        except FileNotFoundError as error:
            raise StoreUnavailable(place, "there is no store here") from error
        except NotADirectoryError as error:
            reason = "there is a file where an LMDB store needs a folder"
            raise StoreUnavailable(place, reason) from error
        except OSError as error:
            raise StoreUnavailable(place, error.strerror or str(error)) from error
        data = folder / DATA
        size = data.stat().st_size if DATA in names else 0
        if SENTINEL in names and size == 0:
            raise StoreDamaged(str(data), "it is empty where a store was")
        if DATA not in names and names - {LOCK, ".gitignore"}:
            raise StoreUnavailable(
                place, "the folder holds other things; choose a folder of its own"
            )
        if not create and size == 0:
            raise StoreUnavailable(place, "there is no store here")
        if size:
            _check_size(data, size)

    def _open(self) -> None:
        try:
            self._env = lmdb.open(
                self.place,
                map_size=self.size_limit,
                max_dbs=8,
                max_readers=MAX_READERS,
                mode=0o600,
                create=True,
            )
            self.databases = {}
        except lmdb.Error as error:
            raise translated(error, self.place) from error
        except OSError as error:
            raise StoreUnavailable(self.place, error.strerror or str(error)) from error

    def open_databases(self, names: tuple[str, ...]) -> None:
        """Make sure that the named databases are there and at hand."""
        for name in names:
            if name not in self.databases:
                self.databases[name] = self._env.open_db(name.encode())

    @contextmanager
    def transaction(self, *, write: bool, patience: float | None = None) -> Iterator[Any]:
        """Run an LMDB transaction; undone unless it was committed."""
        patience = self.patience if patience is None else patience
        pid = os.getpid()
        if write and not self._writer.acquire(timeout=patience):
            raise StoreBusy(self.place, patience, "a thread of this process")
        try:
            self._enter()
            try:
                txn = self._begin(write=write)
                try:
                    yield txn
                except lmdb.Error as error:
                    raise translated(error, self.place) from error
                finally:
                    # A transaction that was committed has nothing left to abort. A child forked
                    # in the midst must not: it would give up the parent's place among the readers.
                    if os.getpid() == pid:
                        txn.abort()
            finally:
                if os.getpid() == pid:
                    self._leave()
        finally:
            if write and os.getpid() == pid:
                self._writer.release()

    def _enter(self) -> None:
        with self._idle:
            if self._stranded:
                raise StoreUnavailable(
                    self.place,
                    "this process was forked inside a transaction on it; start a new one",
                )
            self._idle.wait_for(lambda: not self._closing)
            if self._env is None:
                self._prepare(create=False)
                self._open()
                self.open_databases(self._names)
            me = threading.get_ident()
            self._running[me] = self._running.get(me, 0) + 1

    _names: tuple[str, ...] = ()

    def keep_open(self, names: tuple[str, ...]) -> None:
        """Remember which databases to open again after a fork."""
        self._names = names
        self.open_databases(names)

    def _leave(self) -> None:
        with self._idle:
            me = threading.get_ident()
            self._running[me] -= 1
            if not self._running[me]:
                del self._running[me]
            self._idle.notify_all()

    def _begin(self, *, write: bool) -> Any:
        for attempt in range(8):
            try:
                return self._env.begin(write=write)
            except lmdb.MapResizedError:
                # Another process works with a larger map; take over its size.
                with self._idle:
                    self._idle.wait_for(lambda: len(self._running) == 1, timeout=self.patience)
                    self._env.set_mapsize(0)
            except lmdb.ReadersFullError:
                self._env.reader_check()
                time.sleep(0.01 * attempt)
            except lmdb.Error as error:
                raise translated(error, self.place) from error
        raise StoreBusy(self.place, self.patience, "more readers than it has room for")

    def close(self) -> None:
        """Let go of the folder."""
        with self._idle:
            if self._env is not None and not self._stranded:
                self._env.close()
            self._env = None

    def before_fork(self) -> None:
        """Wait for other threads' transactions and close, unless this thread is in one."""
        self._idle.acquire()
        me = threading.get_ident()
        if me in self._running:
            return
        self._closing = True
        self._idle.wait_for(lambda: not self._running)
        if self._env is not None:
            self._env.close()
            self._env = None

    def after_fork_in_parent(self) -> None:
        """Go on; the next transaction opens the folder again."""
        self._closing = False
        self._idle.notify_all()
        self._idle.release()

    def after_fork_in_child(self) -> None:
        """Begin anew, without the parent's threads, locks and transactions."""
        self._stranded = self._env is not None
        self._idle = threading.Condition()
        self._writer = threading.Lock()
        self._running = {}
        self._closing = False


def _make(folder: Path) -> None:
    if not folder.parent.is_dir():
        raise StoreUnavailable(str(folder), f"the folder {folder.parent} does not exist")
    folder.mkdir(mode=0o700, exist_ok=True)


def write_sentinel(folder: Path, uuid: str) -> None:
    """Leave a mark that a store is here, so that an emptied file is not taken for a new one."""
    mark = folder / SENTINEL
    if mark.exists():
        return
    fresh = folder / f"{SENTINEL}.{os.getpid()}"
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        json.dump({"herdbook": "lmdb", "uuid": uuid}, file)
        file.flush()
        os.fsync(file.fileno())
    fresh.rename(mark)


def _check_size(data: Path, size: int) -> None:
    """Refuse a data file that is shorter than it says: reading past its end kills the process."""
    try:
        with data.open("rb") as file:
            head = file.read(65_536 + _META.size)
    except OSError as error:
        raise StoreUnavailable(str(data), error.strerror or str(error)) from error
    if len(head) < _META.size:
        raise StoreDamaged(str(data), "it is cut off")
    first = _META.unpack_from(head)
    if first[5] != _MAGIC:
        raise StoreDamaged(str(data), "it is not an LMDB file")
    # The page size stands in the first field of the free list's record.
    page = int.from_bytes(first[9][:4], "little")
    if page not in (4_096, 8_192, 16_384, 32_768, 65_536) or len(head) < page + _META.size:
        raise StoreDamaged(str(data), "it is cut off")
    second = _META.unpack_from(head, page)
    if second[5] != _MAGIC:
        raise StoreDamaged(str(data), "its second header is not one of LMDB's")
    last_page = max((first, second), key=lambda meta: meta[12])[11]
    if size < (last_page + 1) * page:
        raise StoreDamaged(str(data), f"it has {size} bytes of {(last_page + 1) * page}")


_environments: dict[tuple[int, int], Environment] = {}
_guard = threading.Lock()


def acquire(folder: Path, *, size_limit: int, patience: float, create: bool) -> Environment:
    """The environment of a folder, shared by all stores this process has open on it."""
    real = Path(os.path.realpath(folder))
    with _guard:
        shared = _environments.get(_identity(real)) if real.exists() else None
        if shared is None:
            shared = Environment(real, size_limit, patience)
            shared.open(create=create)
            _environments[_identity(real)] = shared
        shared.users += 1
        return shared


def release(environment: Environment) -> None:
    """Give an environment back; the last one closes it."""
    with _guard:
        environment.users -= 1
        if environment.users == 0:
            environment.close()
            for identity in [k for k, each in _environments.items() if each is environment]:
                del _environments[identity]


def _identity(folder: Path) -> tuple[int, int]:
    status = folder.stat()
    return status.st_dev, status.st_ino


def _before_fork() -> None:
    _guard.acquire()
    for environment in _environments.values():
        environment.before_fork()


def _after_fork_in_parent() -> None:
    for environment in _environments.values():
        environment.after_fork_in_parent()
    _guard.release()


def _after_fork_in_child() -> None:
    for environment in _environments.values():
        environment.after_fork_in_child()
    _guard.release()


os.register_at_fork(
    before=_before_fork,
    after_in_parent=_after_fork_in_parent,
    after_in_child=_after_fork_in_child,
)
