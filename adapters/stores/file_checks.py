"""Checks on the files of a store, made before an engine opens them.

Engines follow links and open whatever they find. A store that came with a clone or an archive may
hold a link in the place of one of its files, and the engine would then read, overwrite or create a
file somewhere else. So every file of a store is checked first, and opened only if it is a regular
file with one name that belongs to this account.
"""

import os
import stat
from pathlib import Path

from herdbook.adapters.user_state.known_stores import identity_at, is_trusted
from herdbook.domain.errors import StoreUnavailable, StoreUntrusted

_KINDS = (
    (stat.S_ISLNK, "a symbolic link"),
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def require_regular(path: Path, place: str) -> os.stat_result | None:
    """The status of a regular file with one name, links not followed; None if it is absent.

    Raises StoreUnavailable for a symbolic link, a folder, a named pipe, a socket, a device, a file
    with a second name (a hard link), and if its status cannot be read. `place` is the store that
    the error names.
    """
    try:
        status = path.lstat()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreUnavailable(place, f"{path.name}: {error.strerror or error}") from error
    if not stat.S_ISREG(status.st_mode):
        kind = next((name for matches, name in _KINDS if matches(status.st_mode)), "no file")
        raise _refusal(place, f"{path.name} is {kind} where a store has a file of its own")
    if status.st_nlink != 1:
        reason = "has a second name (a hard link), by which others could open it unseen"
        raise _refusal(place, f"{path.name} {reason}")
    return status


def require_own(status: os.stat_result, path: Path, place: str) -> None:
    """Raise StoreUntrusted if the file or folder belongs to another account.

    Ours are the account this process acts for and, for root under sudo, the one that called sudo. A
    store that this user trusted may belong to anybody.
    """
    if status.st_uid in _accepted_accounts() or is_trusted(identity_at(Path(place))):
        return
    owners = f"{path.name} belongs to the account {status.st_uid} and not to {os.geteuid()}"
    raise StoreUntrusted(place, owners)


def require_own_file(path: Path, place: str) -> None:
    """Raise as `require_regular` and `require_own` do, for a file that exists."""
    status = require_regular(path, place)
    if status is not None:
        require_own(status, path, place)


def is_own_account(path: Path) -> bool:
    """Whether a file or folder belongs to this account; true if it does not exist.

    Raises StoreUnavailable if its status cannot be read.
    """
    try:
        return path.lstat().st_uid in _accepted_accounts()
    except FileNotFoundError:
        return True
    except OSError as error:
        raise StoreUnavailable(str(path), error.strerror or str(error)) from error


def _accepted_accounts() -> set[int]:
    accounts = {os.geteuid()}
    caller = os.environ.get("SUDO_UID", "")
    # Only ASCII digits: int() accepts more.
    if os.geteuid() == 0 and caller.isascii() and caller.isdecimal():
        accounts.add(int(caller))
    return accounts


def _refusal(place: str, reason: str) -> StoreUnavailable:
    return StoreUnavailable(place, f"{reason}. Nothing was opened")
