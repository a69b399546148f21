"""The files of an LMDB store: which there are, how they are checked, and how new ones are created.

They are checked before LMDB opens any of them, because LMDB follows links and creates missing
files.
"""

import json
import os
import threading
from pathlib import Path

from herdbook.adapters.lmdb.headers import check_headers, is_unfinished
from herdbook.adapters.stores.file_checks import require_own, require_own_file, require_regular
from herdbook.adapters.system.os_errors import translate_os_error, translate_os_errors
from herdbook.adapters.user_state.known_stores import OWNER
from herdbook.domain.errors import HerdbookError, StoreDamaged, StoreUnavailable

DATA, LOCK, SENTINEL = "data.mdb", "lock.mdb", "herdbook.json"
WRITER_LOCK, WRITER_TURN = "writer.lock", "writer.turn"
_NEW_LOCK = f"{LOCK}.new"
_FILES = (DATA, LOCK, SENTINEL, WRITER_LOCK, WRITER_TURN, _NEW_LOCK, OWNER)
_HOLD_NOTHING = {LOCK, WRITER_LOCK, WRITER_TURN, _NEW_LOCK, OWNER, ".gitignore"}
"""What may be in a folder that holds no store yet."""

MAX_READERS = 2_048
_LOCK_SIZE = 192 + 64 * (MAX_READERS - 1)
"""The size of LMDB's lock file for this number of readers."""
_LITTLE_ROOM = 8 << 20


def make_folder(folder: Path) -> None:
    """Create the folder of a new store unless it exists; its parent folder must exist.

    Raises StoreUnavailable if it cannot be created.
    """
    place = str(folder)
    with translate_os_errors(place):
        if folder.exists():
            return
        if not folder.parent.is_dir():
            raise StoreUnavailable(place, f"the folder {folder.parent} does not exist")
        folder.mkdir(mode=0o700, exist_ok=True)


def require_files(folder: Path) -> None:
    """Raise StoreUnavailable if the folder or a file in it is not our own, or not a plain file."""
    place = str(folder)
    with translate_os_errors(place):
        require_own(folder.stat(), folder, place)
    for name in _FILES:
        require_own_file(folder / name, place)


def holds_store(folder: Path, *, create: bool) -> bool:
    """Whether a store is in the folder; False if there is none and `create` allows to make one.

    Raises StoreUnavailable if there is none and none may be made, or if the files are not ours to
    open; StoreDamaged if there was a store.
    """
    place = str(folder)
    try:
        names = {each.name for each in folder.iterdir()}
    except FileNotFoundError as error:
        raise StoreUnavailable(place, "there is no store here") from error
    except NotADirectoryError as error:
        reason = "there is a file where an LMDB store needs a folder"
        raise StoreUnavailable(place, reason) from error
    except OSError as error:
        raise translate_os_error(error, place) from error
    require_files(folder)
    data = folder / DATA
    if DATA not in names and names - _HOLD_NOTHING:
        if SENTINEL in names:
            raise StoreDamaged(str(data), "it is missing where a store was")
        raise StoreUnavailable(place, "the folder holds other things; choose a folder of its own")
    if DATA not in names or is_new(data):
        if not create:
            raise StoreUnavailable(place, "there is no store here")
        return False
    check_headers(data)
    return True


def is_free(folder: Path) -> bool:
    """Whether there is no store in a folder, as far as can be seen without opening anything."""
    data = folder / DATA
    if not folder.is_dir():
        return True
    try:
        require_files(folder)
        return not is_marked(folder) and (not data.exists() or is_unfinished(data))
    except HerdbookError:
        return False


def size_of(folder: Path) -> int:
    """The size of the store in a folder in bytes, without its lock files."""
    return sum(each.lstat().st_size for each in folder.iterdir() if each.name not in _HOLD_NOTHING)


def is_new(data: Path) -> bool:
    """Whether nothing was ever in a data file; StoreDamaged if a store's file was emptied."""
    marked = (data.parent / SENTINEL).exists()
    if marked:
        if data.stat().st_size == 0:
            raise StoreDamaged(str(data), "it is empty where a store was")
        return False
    return is_unfinished(data)


def make_files(folder: Path) -> None:
    """Prepare the files of a new store; only for the holder of the writer's lock.

    A data file that an earlier attempt left is truncated: LMDB takes only an empty file for a new
    one.
    """
    data = folder / DATA
    with translate_os_errors(str(folder)):
        if data.exists() and is_new(data):
            os.truncate(data, 0)
    if is_lock_missing(folder):
        allocate_lock(folder)


def is_lock_missing(folder: Path) -> bool:
    """Whether LMDB's lock file is still to be created."""
    return require_regular(folder / LOCK, str(folder)) is None


def allocate_lock(folder: Path) -> None:
    """Create LMDB's lock file with all of its disk space; only for the holder of the writer's lock.

    LMDB would create a sparse file and map it, and on a full disk the first access to a page
    without a block would kill the process. The file is put in place whole or not at all.
    """
    fresh = folder / _NEW_LOCK
    with translate_os_errors(str(folder)):
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(bytes(_LOCK_SIZE))
            fresh.rename(folder / LOCK)
        except BaseException:
            fresh.unlink(missing_ok=True)
            raise


def complete_lock(folder: Path) -> None:
    """Allocate the blocks of a sparse lock file if little disk space is left.

    Its content stays, because others may use it. Only while this process does not have it open:
    closing it would drop LMDB's locks on it.
    """
    with translate_os_errors(str(folder)):
        status = (folder / LOCK).lstat()
        disk = os.statvfs(folder)
        if (
            status.st_blocks * 512 >= min(status.st_size, _LOCK_SIZE)
            or disk.f_bavail * disk.f_frsize > _LITTLE_ROOM
            or not hasattr(os, "posix_fallocate")
        ):
            return
        descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_NOFOLLOW)
        try:
            os.posix_fallocate(descriptor, 0, max(status.st_size, 1))
        finally:
            os.close(descriptor)


def is_marked(folder: Path) -> bool:
    """Whether a store has been in the folder."""
    return (folder / SENTINEL).exists()


def write_sentinel(folder: Path, uuid: str) -> None:
    """Mark the folder as a store, so that an emptied data file is not taken for a new one."""
    mark = folder / SENTINEL
    if mark.exists():
        return
    fresh = folder / f"{SENTINEL}.{os.getpid()}.{threading.get_ident()}"
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
        with os.fdopen(os.open(fresh, flags, 0o600), "w") as file:
            json.dump({"herdbook": "lmdb", "uuid": uuid}, file)
            file.flush()
            os.fsync(file.fileno())
        fresh.rename(mark)
    except OSError as error:
        fresh.unlink(missing_ok=True)
        raise translate_os_error(error, str(mark)) from error
