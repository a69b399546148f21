"""The stores this user has created, trusted or written to, as small files in the state folder.

Two kinds of marks, each named by its content, so that any number of processes may add to them
without a lock:

- `stores/`: a space is in a store. `status --all` shows them all, and a store that disappeared is
  noticed.
- `own-stores/`: a store in files was created by this user, or is trusted. It is identified by the
  device and inode of a file that exists for as long as the store does, so that a store moved with
  its repository stays known, and one that somebody put in its place is not.
"""

import json
import os
import stat
import time
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

from herdbook.adapters.stores.engine_spec import Medium
from herdbook.adapters.stores.registry import spec_of_scheme
from herdbook.adapters.user_state.dirs import make_private, state_folder, write_private
from herdbook.domain.errors import StoreUnavailable

DAY = 86_400.0
FileIdentity = tuple[int, int]


def data_file(scheme: str, path: Path) -> Path:
    """The file that is there exactly when a store of that engine is."""
    spec = spec_of_scheme(scheme)
    return path / spec.data_file if spec.data_file else path


def identity_of(scheme: str, path: Path) -> FileIdentity | None:
    """The identity of the store at a real path; None if there is none yet.

    LMDB's folder and DuckDB's lock file stay for as long as the store does, also when its data is
    restored from a copy.
    """
    return _identity(_standing_for(path, is_folder=_is_folder(scheme)))


def identity_at(place: Path) -> FileIdentity | None:
    """The identity of the store at a path, of either engine; links are followed."""
    real = Path(os.path.realpath(place))
    return _identity(_standing_for(real, is_folder=real.is_dir()))


def reserve(scheme: str, path: Path) -> FileIdentity:
    """Create the file or folder that identifies a new store, for this user alone.

    Returns its identity. Raises StoreUnavailable if it cannot be created.
    """
    is_folder = _is_folder(scheme)
    standing = _standing_for(path, is_folder=is_folder)
    try:
        if is_folder:
            standing.mkdir(mode=0o700, exist_ok=True)
        else:
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            os.close(os.open(standing, flags, 0o600))
        status = os.lstat(standing)
    except OSError as error:
        reason = f"it cannot be made: {error.strerror}. Nothing was written"
        raise StoreUnavailable(str(standing), reason) from error
    if not (stat.S_ISDIR if is_folder else stat.S_ISREG)(status.st_mode):
        raise StoreUnavailable(str(standing), "something else is in its place")
    return status.st_dev, status.st_ino


def is_own(identity: FileIdentity | None) -> bool:
    """Whether this user created or trusted the store with that identity."""
    return identity is not None and _own_mark(identity).exists()


def is_trusted(identity: FileIdentity | None) -> bool:
    """Whether this user explicitly trusted the store with that identity."""
    if identity is None:
        return False
    try:
        return json.loads(_own_mark(identity).read_bytes()).get("trusted") is True
    except (FileNotFoundError, PermissionError, ValueError):
        return False


def add_own(identity: FileIdentity, url: str, *, trusted: bool = False) -> None:
    """Mark a store as this user's own; a `trusted` one even if others may change it."""
    mark = _own_mark(identity)
    if trusted or not mark.exists():
        make_private(mark.parent)
        write_private(mark, json.dumps({"url": url, "trusted": trusted}))


def remove_own(identity: FileIdentity) -> None:
    """Remove the mark of a store as this user's own."""
    _own_mark(identity).unlink(missing_ok=True)


def note_use(url: str, space: str) -> None:
    """Mark a space as used in a store; the time of the mark is updated once a day."""
    mark = _use_mark(url, space)
    try:
        if time.time() - mark.stat().st_mtime > DAY:
            os.utime(mark)
    except FileNotFoundError:
        make_private(mark.parent)
        write_private(mark, json.dumps({"url": url, "space": space}))


def last_use(url: str, space: str) -> datetime | None:
    """The time, to a day, at which a space was last used in a store; None if it never was."""
    try:
        seconds = _use_mark(url, space).stat().st_mtime
    except FileNotFoundError:
        return None
    return datetime.fromtimestamp(seconds, UTC)


def forget_use(url: str, space: str) -> None:
    """Remove the mark of a space in a store."""
    _use_mark(url, space).unlink(missing_ok=True)


def list_uses() -> list[tuple[str, str]]:
    """The stores and spaces this user has written to, as sorted pairs (url, space)."""
    folder = state_folder() / "stores"
    marks = folder.iterdir() if folder.is_dir() else ()
    notes = [json.loads(mark.read_text()) for mark in marks if not mark.name.startswith(".")]
    return sorted((note["url"], note["space"]) for note in notes)


def _is_folder(scheme: str) -> bool:
    return spec_of_scheme(scheme).medium is Medium.FOLDER


def _standing_for(path: Path, *, is_folder: bool) -> Path:
    return path if is_folder else path.with_name(f"{path.name}.lock")


def _identity(standing: Path) -> FileIdentity | None:
    try:
        status = os.lstat(standing)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return status.st_dev, status.st_ino


def _own_mark(identity: FileIdentity) -> Path:
    device, number = identity
    return state_folder() / "own-stores" / f"{device:x}-{number:x}"


def _use_mark(url: str, space: str) -> Path:
    text = json.dumps({"url": url, "space": space})
    return state_folder() / "stores" / sha256(text.encode()).hexdigest()[:32]
