"""Changes to files of other programs: shown before they are applied, and undone byte for byte.

The original of each changed file and a digest of what we wrote are saved in the user's state
folder: as long as nobody else changes the file, uninstalling restores exactly the original.
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


class SettingsFile(NamedTuple):
    """A file of an agent's, and whether it is for this user alone."""

    path: Path
    private: bool


class FileChange(NamedTuple):
    """The content of a file before and after a change; None stands for no file.

    `original` is what uninstalling restores. The existing file can be kept beside it under another
    name (`keep`), or be moved back from there (`restore`).
    """

    path: Path
    before: bytes | None
    after: bytes | None
    original: bytes | None = None
    keep: Path | None = None
    restore: Path | None = None
    executable: bool = False


class ChangePlan(NamedTuple):
    """The changes of an install or uninstall, and notes about them for a person."""

    changes: list[FileChange]
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
    """The bytes of a file; None if there is none. StoreUnavailable if it cannot be read."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreUnavailable(str(path), f"it cannot be read ({error.strerror})") from error


def rewrite_text(path: Path, now: bytes | None, rewrite: Callable[[str], str]) -> bytes:
    """The bytes of a file with its text rewritten; InvalidValue if it is not understood."""
    try:
        return rewrite((now or b"").decode()).encode()
    except UnicodeDecodeError as error:
        raise InvalidValue(str(path), "is not text in UTF-8. Nothing was changed") from error
    except (ValueError, RecursionError) as error:
        raise InvalidValue(str(path), f"{error}. Nothing was changed") from error


def unified_diff(change: FileChange) -> str:
    """A change as a unified diff."""
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


def apply_plan(plan: ChangePlan) -> None:
    """Apply all changes of a plan, each file atomically; StoreUnavailable if one cannot be."""
    for change in plan.changes:
        try:
            _apply(change)
        except OSError as error:
            reason = f"it cannot be changed ({error.strerror}); it is as it was"
            raise StoreUnavailable(str(change.path), reason) from error


def _apply(change: FileChange) -> None:
    # A symbolic link stays one: its target is changed.
    path = change.path if change.keep or change.restore else Path(os.path.realpath(change.path))
    if change.restore is not None:
        change.restore.replace(path)
        _record_path(path).unlink(missing_ok=True)
        return
    if change.after is None:
        path.unlink(missing_ok=True)
        _remove_folders(change.path)
        _save_original(change, [])
        return
    made = _make_folders(path)
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
    _save_original(change, made)
    fresh.replace(path)


def saved_original(path: Path, now: bytes | None) -> tuple[bool, bytes | None]:
    """Whether a file is as we wrote it, and its original; None if there was no file."""
    try:
        told = json.loads(_record_path(path).read_bytes())
        before = told["before"]
        same = now is not None and told["after"] == sha256(now).hexdigest()
        return same, None if before is None else bytes.fromhex(before)
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return False, None


def without_ours(path: Path, now: bytes | None, remove: Callable[[str], str]) -> bytes | None:
    """The file as it was before us: its original, or what `remove` leaves if others changed it."""
    unchanged, before = saved_original(path, now)
    if unchanged or now is None:
        return before if unchanged else None
    return rewrite_text(path, now, remove)


def plan_change(
    path: Path, now: bytes | None, after: bytes | None, original: bytes | None
) -> ChangePlan:
    """The plan that changes one file, whose original is known; no change if it is so already."""
    return ChangePlan([] if after == now else [FileChange(path, now, after, original)], [])


def _save_original(change: FileChange, made: list[str]) -> None:
    record = _record_path(change.path)
    if change.after is None or change.after == change.original:
        record.unlink(missing_ok=True)
        return
    told = {
        "path": str(change.path),
        "before": None if change.original is None else change.original.hex(),
        "after": sha256(change.after).hexdigest(),
        "folders": made or _saved_folders(change.path),
    }
    make_private(record.parent)
    write_private(record, json.dumps(told))


def _record_path(path: Path) -> Path:
    return state_folder() / "hooks" / sha256(os.fsencode(path)).hexdigest()[:32]


def _make_folders(path: Path) -> list[str]:
    """Make the folders that a file needs; returns the new ones, outermost first."""
    missing = [each for each in reversed(path.parents) if not each.is_dir()]
    for each in missing:
        each.mkdir(exist_ok=True)
    return [str(each) for each in missing]


def _saved_folders(path: Path) -> list[str]:
    """The folders that were made for a file, outermost first."""
    try:
        told = json.loads(_record_path(path).read_bytes())["folders"]
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return []
    return [str(each) for each in told]


def _remove_folders(path: Path) -> None:
    """Remove the folders that were made for a file, as far as they are empty."""
    for each in reversed(_saved_folders(path)):
        try:
            Path(each).rmdir()
        except OSError:
            return  # it is not empty
