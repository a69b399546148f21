"""Checks files before DuckDB opens them, because it would open or create what we refuse."""

import os
import stat
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path

from herdbook.adapters.duckdb.errors import translate_errors
from herdbook.adapters.duckdb.file_lock import FileState
from herdbook.adapters.stores.file_checks import require_own, require_own_file
from herdbook.adapters.user_state.known_stores import OWNER
from herdbook.domain.errors import StoreDamaged, StoreUnavailable

_LOGS = (".wal", ".wal.checkpoint", ".wal.recovery")
"""Suffixes of the files that DuckDB itself opens beside a database: its log, and what a checkpoint
turns it into."""
_OWN = (".lock", ".turn", ".rollback", f".{OWNER}")
"""Suffixes of the files that Herdbook opens there: the lock, the copy of overwritten blocks, and
the token of who made the store."""
_HEADERS = 3 * 4096  # one for the file and two in turn for the database; each checkpoint writes one


def real_path(path: str | os.PathLike[str]) -> Path:
    """The path with its links resolved: the lock and the write-ahead log are beside the real file.

    Raises StoreUnavailable for a path that is no file name, or whose links lead nowhere.
    """
    named = os.fspath(path)
    try:
        named.encode()
        return Path(named).resolve()
    except ValueError as error:
        raise StoreUnavailable(repr(named), "this is no name of a file") from error
    except (OSError, RuntimeError) as error:
        raise StoreUnavailable(named, f"its links lead nowhere ({error})") from error


def wal_path(path: Path) -> Path:
    """DuckDB's write-ahead log: it exists while the file is attached, and after a crash."""
    return side_path(path, ".wal")


def side_path(path: Path, suffix: str) -> Path:
    """Where DuckDB puts its own file of this suffix.

    It takes a question mark for the end of the name, also in the name of a folder.
    """
    name, mark, rest = str(path).partition("?")
    return Path(f"{name}{suffix}{mark}{rest}")


def new_path(path: Path) -> Path:
    """Where a database is created before it is moved to its place."""
    return path.with_name(f"{path.name}.new")


def rollback_path(path: Path) -> Path:
    """The copy of the blocks that the next checkpoint overwrites."""
    return path.with_name(f"{path.name}.rollback")


def sync_to_disk(path: Path) -> None:
    """Make a file, or the list of a folder, survive a loss of power. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def spill_path(path: Path) -> Path:
    """The folder into which DuckDB writes what does not fit into memory."""
    return path.with_name(f"{path.name}.tmp")


def allowed_paths(path: Path) -> list[str]:
    """Every file that DuckDB may open for this database: itself, the new one, and their logs."""
    return [
        str(each)
        for database in (path, new_path(path))
        for each in (database, *(side_path(database, suffix) for suffix in _LOGS))
    ]


def require_own_files(path: Path) -> None:
    """Refuse a database with a file beside it that is not a plain file of this account.

    DuckDB follows links, so a link in the place of its log would lead it to any other file. Raises
    StoreUnavailable.
    """
    place = str(path)
    for each in _side_files(path):
        require_own_file(each, place)
    folder = spill_path(path)
    with translate_errors(place):
        try:
            status = folder.lstat()
        except FileNotFoundError:
            return
        if not stat.S_ISDIR(status.st_mode):
            raise StoreUnavailable(place, f"{folder.name} is not a folder. Nothing was opened")
        require_own(status, folder, place)
        for each in folder.iterdir():
            require_own_file(each, place)


@lru_cache(maxsize=64)
def _side_files(path: Path) -> tuple[Path, ...]:
    others = [path.with_name(f"{path.name}{suffix}") for suffix in _OWN]
    return (*map(Path, allowed_paths(path)[1:]), *others)


def require_folder(path: Path) -> None:
    """Raise StoreUnavailable if the folder of a file does not exist."""
    place = str(path)
    with translate_errors(place):
        if path.parent.is_dir():
            return
        if path.parent.exists():
            raise StoreUnavailable(place, f"{path.parent} is not a folder")
        raise StoreUnavailable(place, f"the folder {path.parent} does not exist")


def require_database(path: Path) -> os.stat_result:
    """Refuse a path that cannot be a database which only we reach by this path.

    Raises StoreUnavailable, and StoreDamaged for an empty file or a log without its file.
    """
    require_folder(path)
    require_own_files(path)
    place = str(path)
    with translate_errors(place):
        try:
            status = path.lstat()
        except FileNotFoundError:
            raise _missing_error(path) from None
        if stat.S_ISDIR(status.st_mode):
            raise StoreUnavailable(place, "it is a folder, not a file")
        if not stat.S_ISREG(status.st_mode):
            raise StoreUnavailable(place, "it is not a plain file")
        if status.st_nlink > 1:
            raise StoreUnavailable(
                place, "it has a second name (a hard link), by which others could open it unseen"
            )
        if status.st_size == 0:
            raise StoreDamaged(place, "it is empty (0 bytes)")
        require_own(status, path, place)
        return status


def require_absence(path: Path) -> bool:
    """Whether nothing is at the path yet, so that a new database may be created.

    Raises StoreDamaged if only a write-ahead log is there.
    """
    require_folder(path)
    require_own_files(path)
    with translate_errors(str(path)):
        if path.exists():
            return False
    if isinstance(reason := _missing_error(path), StoreDamaged):
        raise reason
    return True


def read_state(path: Path) -> FileState:
    """The state of the file now; only while it is not attached: closing it drops DuckDB's lock."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        head = os.pread(descriptor, _HEADERS, 0)
        size = os.fstat(descriptor).st_size
    finally:
        os.close(descriptor)
    return FileState(blake2b(head, digest_size=16).hexdigest(), size)


def require_length(path: Path, left: FileState | None) -> None:
    """Refuse a file that lost its end: it has the headers it was left with, but is shorter.

    DuckDB notices only when it reads the missing part. Its headers do not contain the length that a
    file should have (blocks at the end may be free and cut off), so the process that closes it
    records that.
    """
    if left is None:
        return
    with translate_errors(str(path)):
        now = read_state(path)
    if now.head == left.head and now.size < left.size:
        raise StoreDamaged(str(path), f"its end is missing ({now.size} of {left.size} bytes)")


def _missing_error(path: Path) -> StoreDamaged | StoreUnavailable:
    if wal_path(path).exists():
        # DuckDB would create a new database here and discard the log.
        return StoreDamaged(str(path), "the file is missing, but its write-ahead log is there")
    return StoreUnavailable(str(path), "there is no such file")
