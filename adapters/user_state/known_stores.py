"""The stores this user has made, trusted or written to, as small files in the state folder.

Three kinds of marks, each named by its content, so that any number of processes may add to them
without a lock:

- `stores/`: a space is in a store. `status --all` shows them all, and a store that disappeared is
  noticed.
- `made-stores/`: a store in files was made by this user. It is identified by a random token that
  lies beside its data and that nobody else knows, together with its path or its inode: a store that
  was moved stays known and so does one that was restored in its place, but not one that somebody
  else put there, nor a copy elsewhere. Device numbers are not compared: on some file systems they
  change with every start of the machine.
- `trusted-stores/`: a store in files is trusted, by the device and inode of a file that exists for
  as long as the store does.
"""

import json
import os
import re
import stat
import time
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

from herdbook.adapters.stores.engine_spec import Medium
from herdbook.adapters.stores.registry import spec_of_scheme
from herdbook.adapters.system.os_errors import translate_os_errors
from herdbook.adapters.user_state.dirs import (
    keep_newest,
    state_folder,
    write_private,
)
from herdbook.domain.errors import StoreUnavailable
from herdbook.domain.retention import MOST_MARKS

DAY = 86_400.0
OWNER = "owner"
"""The file with a store's token: in its folder, or beside its data as a suffix."""
FileIdentity = tuple[int, int]
_TOKEN = re.compile(rb"[0-9a-f]{32}")


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


def mark_made(scheme: str, path: Path) -> None:
    """Mark the store that is at a real path, or will be, as made by this user.

    Raises StoreUnavailable or StoreFull if that cannot be written.
    """
    _, inode = reserve(scheme, path)
    token = os.urandom(16).hex()
    mark = _made_mark(token)
    fresh = path.with_name(f".{path.name}.{token}")  # a new store's folder must hold nothing else
    with translate_os_errors(str(path)):
        # The mark comes first: whichever of several processes is last, its token is known.
        write_private(mark, json.dumps({"path": str(path), "inode": inode}))
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            with os.fdopen(os.open(fresh, flags, 0o600), "w") as file:
                file.write(token)
                file.flush()
                os.fsync(file.fileno())
            fresh.rename(_token_path(scheme, path))
        except BaseException:
            fresh.unlink(missing_ok=True)
            raise


def was_made_here(scheme: str, path: Path) -> bool:
    """Whether this user made the store at a real path."""
    token, identity = _read_token(_token_path(scheme, path)), identity_of(scheme, path)
    if token is None or identity is None:
        return False
    try:
        mark = json.loads(_made_mark(token).read_bytes())
    except (FileNotFoundError, PermissionError, ValueError):
        return False
    return bool(mark.get("path") == str(path) or mark.get("inode") == identity[1])


def forget_made(scheme: str, path: Path) -> None:
    """Remove the mark of the store at a real path as made by this user."""
    token = _read_token(_token_path(scheme, path))
    if token is not None:
        _made_mark(token).unlink(missing_ok=True)


def is_trusted(identity: FileIdentity | None) -> bool:
    """Whether this user trusted the store with that identity."""
    return identity is not None and _trust_mark(identity).exists()


def add_trusted(identity: FileIdentity, url: str) -> None:
    """Mark a store as trusted, also if others may change it.

    Raises StoreUnavailable or StoreFull if that cannot be written.
    """
    mark = _trust_mark(identity)
    with translate_os_errors(str(mark.parent)):
        write_private(mark, json.dumps({"url": url}))


def remove_trusted(identity: FileIdentity) -> None:
    """Remove the mark of a store as trusted."""
    _trust_mark(identity).unlink(missing_ok=True)


def note_use(url: str, space: str) -> None:
    """Mark a space as used in a store; the time of the mark is updated once a day.

    Raises StoreUnavailable or StoreFull if that cannot be written.
    """
    mark = _use_mark(url, space)
    with translate_os_errors(str(mark.parent)):
        try:
            if time.time() - mark.stat().st_mtime > DAY:
                os.utime(mark)
        except FileNotFoundError:
            write_private(mark, json.dumps({"url": url, "space": space}))
            keep_newest(mark.parent, MOST_MARKS)


def last_use(url: str, space: str) -> datetime | None:
    """The time, to a day, at which a space was last used in a store; None if it never was.

    Raises StoreUnavailable if the marks cannot be read.
    """
    mark = _use_mark(url, space)
    with translate_os_errors(str(mark.parent)):
        try:
            seconds = mark.stat().st_mtime
        except FileNotFoundError:
            return None
    return datetime.fromtimestamp(seconds, UTC)


def forget_use(url: str, space: str) -> None:
    """Remove the mark of a space in a store; raises StoreUnavailable if it cannot be removed."""
    mark = _use_mark(url, space)
    with translate_os_errors(str(mark.parent)):
        mark.unlink(missing_ok=True)


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


def _token_path(scheme: str, path: Path) -> Path:
    return path / OWNER if _is_folder(scheme) else path.with_name(f"{path.name}.{OWNER}")


def _read_token(path: Path) -> str | None:
    """The token in a file; None if it has none, or is no regular file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        is_file = stat.S_ISREG(os.fstat(descriptor).st_mode)
        content = os.read(descriptor, 64) if is_file else b""
    finally:
        os.close(descriptor)
    return content.decode() if _TOKEN.fullmatch(content) else None


def _made_mark(token: str) -> Path:
    return state_folder() / "made-stores" / token


def _trust_mark(identity: FileIdentity) -> Path:
    device, number = identity
    return state_folder() / "trusted-stores" / f"{device:x}-{number:x}"


def _use_mark(url: str, space: str) -> Path:
    text = json.dumps({"url": url, "space": space})
    return state_folder() / "stores" / sha256(text.encode()).hexdigest()[:32]
