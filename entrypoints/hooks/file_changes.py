"""Changes of other people's files: shown before they are made, and undone to the byte.

Of each file that is changed, what it was and what we made of it are remembered in the user's state
folder: as long as nobody changes it, uninstalling gives back exactly what was there.
"""

import difflib
import json
import os
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from herdbook.adapters.user_state.dirs import make_private, state_folder, write_private
from herdbook.domain.errors import InvalidValue, StoreUnavailable
from herdbook.domain.location.resolve import is_within


class Change(NamedTuple):
    """What a file is, and is to become; None stands for no file.

    `original` is what uninstalling is to give back. What is there can be kept beside under another
    name (`keep`), or be taken back from there (`restore`).
    """

    path: Path
    before: bytes | None
    after: bytes | None
    original: bytes | None = None
    keep: Path | None = None
    restore: Path | None = None
    executable: bool = False


class Plan(NamedTuple):
    """What installing or uninstalling will do, and what a person should know about it."""

    changes: list[Change]
    notes: list[str]


def require_inside(path: Path, root: Path) -> None:
    """Raise InvalidValue if links lead a file of a project out of it.

    They may have come with a repository that wants a file elsewhere to be changed. The user's own
    settings may be links to wherever the user keeps them.
    """
    real = os.path.realpath(path)
    if not is_within(real, os.path.realpath(root)):
        reason = f"its links lead out of the project, to {real}. Nothing was changed"
        raise InvalidValue(str(path), reason)


def content(path: Path) -> bytes | None:
    """What a file holds; None if there is none."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreUnavailable(str(path), f"it cannot be read ({error.strerror})") from error


def rewritten(path: Path, now: bytes | None, rewrite: Callable[[str], str]) -> bytes:
    """The bytes of a file with its text rewritten; InvalidValue where that is not understood."""
    try:
        return rewrite((now or b"").decode()).encode()
    except UnicodeDecodeError as error:
        raise InvalidValue(str(path), "is not text in UTF-8. Nothing was changed") from error
    except (ValueError, RecursionError) as error:
        raise InvalidValue(str(path), f"{error}. Nothing was changed") from error


def difference(change: Change) -> str:
    """What will change, line by line, as a unified difference."""
    old, new = (_lines(each) for each in (change.before, change.after))
    from_file, to_file = (
        os.devnull if each is None else str(change.path) for each in (change.before, change.after)
    )
    told = list(difflib.unified_diff(old, new, from_file, to_file, lineterm=""))
    if change.keep:
        told.append(f"(what is there is kept as {change.keep} and still called)")
    return "\n".join(told)


def _lines(data: bytes | None) -> list[str]:
    return (data or b"").decode("utf-8", "replace").splitlines()


def make(plan: Plan) -> None:
    """Make all changes of a plan, each file in one step."""
    for change in plan.changes:
        try:
            _make(change)
        except OSError as error:
            reason = f"it cannot be changed ({error.strerror}); it is as it was"
            raise StoreUnavailable(str(change.path), reason) from error


def _make(change: Change) -> None:
    # Somebody's link stays a link: what it leads to is changed.
    path = change.path if change.keep or change.restore else Path(os.path.realpath(change.path))
    if change.restore is not None:
        change.restore.replace(path)
        _record(path).unlink(missing_ok=True)
        return
    if change.after is None:
        path.unlink(missing_ok=True)
        _drop_folders(change.path)
        _remember(change, [])
        return
    made = _made_folders(path)
    fresh = path.with_name(f".{path.name}.{os.urandom(4).hex()}")
    mode = 0o755 if change.executable else 0o644
    if change.before is not None and not change.executable:
        mode = path.stat().st_mode & 0o777
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
    with open(descriptor, "wb") as file:  # noqa: PTH123 - a descriptor
        file.write(change.after)
    fresh.chmod(mode)
    if change.keep is not None and change.before is not None:
        os.link(path, change.keep, follow_symlinks=False)
    _remember(change, made)
    fresh.replace(path)


def remembered(path: Path, now: bytes | None) -> tuple[bool, bytes | None]:
    """Whether a file is as we left it, and what it was before; None if it was not there."""
    try:
        told = json.loads(_record(path).read_bytes())
        before = told["before"]
        same = now is not None and told["after"] == sha256(now).hexdigest()
        return same, None if before is None else bytes.fromhex(before)
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return False, None


def _remember(change: Change, made: list[str]) -> None:
    record = _record(change.path)
    if change.after is None or change.after == change.original:
        record.unlink(missing_ok=True)
        return
    told = {
        "path": str(change.path),
        "before": None if change.original is None else change.original.hex(),
        "after": sha256(change.after).hexdigest(),
        "folders": made or _folders(change.path),
    }
    make_private(record.parent)
    write_private(record, json.dumps(told))


def _record(path: Path) -> Path:
    return state_folder() / "hooks" / sha256(os.fsencode(path)).hexdigest()[:32]


def _made_folders(path: Path) -> list[str]:
    """Make the folders a file needs; those that were not there, outermost first."""
    missing = [each for each in reversed(path.parents) if not each.is_dir()]
    for each in missing:
        each.mkdir(exist_ok=True)
    return [str(each) for each in missing]


def _folders(path: Path) -> list[str]:
    """The folders that were made for a file, outermost first."""
    try:
        told = json.loads(_record(path).read_bytes())["folders"]
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return []
    return [str(each) for each in told]


def _drop_folders(path: Path) -> None:
    """Take away the folders that were made for a file, as far as nothing else is in them."""
    for each in reversed(_folders(path)):
        try:
            Path(each).rmdir()
        except OSError:
            return  # somebody has put something into it
