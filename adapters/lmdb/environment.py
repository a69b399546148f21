"""One LMDB environment per folder and process: opened, checked, shared, and safe to fork."""

import errno
import json
import os
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

import lmdb

from herdbook.adapters.lmdb.room import Room
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
_MAGIC, _VERSION = 0xBEEFC0DE, 1
_NO_ROOM = {
    errno.ENOSPC: "there is no space left on its disk",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "no file may grow larger here",
    # What LMDB makes of a write of which the disk took a part.
    errno.EIO: "its disk did not take all of it",
}


def translated(error: lmdb.Error, place: str) -> HerdbookError:
    """LMDB's errors as ours; the one place that knows them."""
    code = error.args[0] if error.args else ""
    match error:
        case lmdb.MapFullError():
            return StoreFull(place, "it has reached its size limit; a larger one can be configured")
        case (
            lmdb.CorruptedError()
            | lmdb.IncompatibleError()
            | lmdb.PageNotFoundError()
            | lmdb.PanicError()
            | lmdb.InvalidError()
            | lmdb.VersionMismatchError()
        ):
            return StoreDamaged(place, f"LMDB says {code}")
        case lmdb.ReadersFullError():
            return StoreUnavailable(place, "more processes read it at once than it has room for")
        case _ if reason := _lack_of_room(error):
            return StoreFull(place, reason)
        case _:
            return StoreUnavailable(place, f"LMDB says {code}")


def _lack_of_room(error: lmdb.Error) -> str:
    told = (why for number, why in _NO_ROOM.items() if os.strerror(number) in str(error))
    return next(told, "its disk refused to write" if isinstance(error, lmdb.DiskError) else "")


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
        self._resizing: set[int] = set()
        self._closing = False
        self._writer = threading.Lock()
        self.naming = threading.Lock()  # held by whoever finds databases by their names
        self._env: Any = None
        self._stranded = False
        self.databases: dict[str, Any] = {}
        self._names: tuple[str, ...] = ()
        self._room = Room(folder / DATA, size_limit)
        self._page = 0

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
        except StoreUnavailable:
            raise
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
            _check_headers(data)

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
            self._page = self._env.stat()["psize"]
        except lmdb.Error as error:
            raise translated(error, self.place) from error
        except OSError as error:
            raise StoreUnavailable(self.place, error.strerror or str(error)) from error

    def found(self, names: tuple[str, ...], txn: Any) -> dict[str, Any]:
        """Those of the named databases that are there, for as long as a transaction lasts."""
        there = {}
        for name in names:
            with suppress(lmdb.NotFoundError):
                there[name] = self._env.open_db(name.encode(), txn=txn, create=False)
        return there

    def keep_open(self, names: tuple[str, ...]) -> None:
        """Make sure that the named databases are there and at hand, after a fork too."""
        self._names = names
        try:
            for name in names:
                if name not in self.databases:
                    self.databases[name] = self._env.open_db(name.encode())
        except lmdb.Error as error:
            raise translated(error, self.place) from error

    def is_marked(self) -> bool:
        """Whether a store has been here."""
        return (self.folder / SENTINEL).exists()

    def transaction(
        self, *, write: bool, patience: float | None = None
    ) -> AbstractContextManager[Any]:
        """Run an LMDB transaction; undone unless it was committed."""
        if not write:
            return self._inside(write=False)
        return self._writing(self.patience if patience is None else patience)

    @contextmanager
    def _writing(self, patience: float) -> Iterator[Any]:
        pid = os.getpid()
        if not self._writer.acquire(timeout=patience):
            raise StoreBusy(self.place, patience, "a thread of this process")
        try:
            with self._inside(write=True) as txn:
                yield txn
        finally:
            if os.getpid() == pid:
                self._writer.release()

    @contextmanager
    def _inside(self, *, write: bool) -> Iterator[Any]:
        pid = os.getpid()
        self._enter()
        try:
            txn = self._begin(write=write)
            try:
                if write:
                    self._room.make((self._env.info()["last_pgno"] + 1) * self._page)
                yield txn
            except lmdb.Error as error:
                raise translated(error, self.place) from error
            finally:
                # A transaction that was committed has nothing left to abort. A child forked in
                # the midst must not: it would give up the parent's place among the readers.
                if os.getpid() == pid:
                    txn.abort()
        finally:
            if os.getpid() == pid:
                self._leave()

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
                self.keep_open(self._names)
            me = threading.get_ident()
            self._running[me] = self._running.get(me, 0) + 1

    def _leave(self) -> None:
        with self._idle:
            me = threading.get_ident()
            self._running[me] -= 1
            if not self._running[me]:
                del self._running[me]
            self._idle.notify_all()

    def _begin(self, *, write: bool) -> Any:
        deadline = time.monotonic() + self.patience
        while time.monotonic() < deadline:
            try:
                return self._env.begin(write=write)
            except lmdb.MapResizedError:
                self._take_over_size()
            except lmdb.ReadersFullError:
                self._env.reader_check()
                time.sleep(0.01)
            except lmdb.Error as error:
                raise translated(error, self.place) from error
        raise StoreBusy(self.place, self.patience, "more readers than it has room for")

    def _take_over_size(self) -> None:
        """Work with the larger map that another process has, as soon as no thread is inside."""
        me = threading.get_ident()
        with self._idle:
            self._resizing.add(me)
            if self._running.keys() <= self._resizing:
                self._env.set_mapsize(0)
            else:
                self._idle.wait(0.05)
            self._resizing.discard(me)

    def close(self) -> None:
        """Let go of the folder."""
        with self._idle:
            if self._env is not None and not self._stranded:
                self._env.close()
            self._env = None

    def before_fork(self) -> None:
        """Wait for other threads' transactions and close, unless this thread is in one.

        A thread may be on its way from one folder into another that waits here already; so this
        ends with our patience, and the child is left without the folder.
        """
        self._idle.acquire()
        me = threading.get_ident()
        if me in self._running:
            return
        self._closing = True
        quiet = self._idle.wait_for(lambda: not self._running, self.patience)
        if quiet and self._env is not None:
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
        self.naming = threading.Lock()
        self._running = {}
        self._resizing = set()
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
    fresh = folder / f"{SENTINEL}.{os.getpid()}.{threading.get_ident()}"
    try:
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            json.dump({"herdbook": "lmdb", "uuid": uuid}, file)
            file.flush()
            os.fsync(file.fileno())
        fresh.rename(mark)
    except OSError as error:
        kind = StoreFull if error.errno in _NO_ROOM else StoreUnavailable
        raise kind(str(mark), error.strerror or str(error)) from error


def _check_headers(data: Path) -> None:
    """Refuse a data file whose headers are not whole, or which is shorter than they say.

    Reading past its end would kill the process, and of two headers LMDB takes the one with the
    larger number, whether or not that is its own. A writer may come between our reading the one
    and the other; so what does not fit is looked at again.
    """
    for _ in range(8):
        if _flaw(data) is None:
            return
        time.sleep(0.001)
    if reason := _flaw(data):
        raise StoreDamaged(str(data), reason)


def _flaw(data: Path) -> str | None:
    try:
        with data.open("rb") as file:
            head = file.read(65_536 + _META.size)
            size = os.fstat(file.fileno()).st_size
    except OSError as error:
        raise StoreUnavailable(str(data), error.strerror or str(error)) from error
    if len(head) < _META.size:
        return "it is cut off"
    first = _META.unpack_from(head)
    if first[5:7] != (_MAGIC, _VERSION):
        return "it is not an LMDB file, or one of another format"
    # The page size stands in the first field of the free list's record.
    page = int.from_bytes(first[9][:4], "little")
    if page not in (4_096, 8_192, 16_384, 32_768, 65_536) or len(head) < page + _META.size:
        return "it is cut off"
    second = _META.unpack_from(head, page)
    if second[5:7] != (_MAGIC, _VERSION):
        return "its second header is not one of LMDB's"
    # Transactions are numbered, and each writes the header that the one before it did not.
    even, odd = first[12], second[12]
    if (even, odd) != (0, 0) and (even % 2, odd % 2, abs(even - odd)) != (0, 1, 1):
        return f"its headers say {even} and {odd} and do not follow one another"
    whole = (max((first, second), key=lambda meta: meta[12])[11] + 1) * page
    return f"it has {size} bytes of {whole}" if size < whole else None


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


@contextmanager
def seen(folder: Path) -> Iterator[Environment | None]:
    """The environment of a folder, if this process has it open; it is left as it is meanwhile.

    LMDB refuses to open a folder twice in a process, also for those who only look.
    """
    real = Path(os.path.realpath(folder))
    with _guard:
        yield _environments.get(_identity(real))


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
