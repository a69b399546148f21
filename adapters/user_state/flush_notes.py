"""Notes about flushes in the state folder, for `herdbook doctor`: implements the port `FlushNotes`.

A folder whose events were recorded without a project is shown until the project of an event of that
folder is found, or the folder is removed. Commits that were counted for nobody are shown for a
while, until their folder is removed.
"""

import json
import os
import time
from collections.abc import Callable, Container, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from herdbook.adapters.user_state import dirs
from herdbook.domain.retention import MOST_NOTES

N = TypeVar("N")

DROPPED_SHOWN = 7 * 86_400.0
"""For how many seconds after the last one commits of nobody are shown."""
NO_AGENT = (
    "git's environment named neither an agent (HERDBOOK_AGENT) nor the session of a coding agent"
)


class UnlocatedNote(NamedTuple):
    """How many events of a folder were recorded without a project, why, and when the last time."""

    folder: str
    reason: str
    events: int
    at: float


class DroppedNote(NamedTuple):
    """How many commits in a folder were counted for nobody, why, and when the last time."""

    folder: str
    reason: str
    commits: int
    at: float


def note_failure(reason: str | None) -> None:
    """Store the reason why the last flush failed; None if it succeeded."""
    dirs.write_note(_failure_file(), reason)


def last_failure() -> str | None:
    """The reason why the last flush failed; None if it succeeded."""
    return dirs.read_note(_failure_file())


def note_unlocated(
    counts: Mapping[str, int], problems: Mapping[str, str], located: Container[str]
) -> None:
    """Store why events of folders have no project, and drop the notes of located folders."""
    before = {each.folder: each for each in list_unlocated()}
    after = {cwd: each for cwd, each in before.items() if cwd not in located}
    for cwd, reason in problems.items():
        earlier = before[cwd].events if cwd in before else 0
        after.pop(cwd, None)
        after[cwd] = UnlocatedNote(cwd, reason, earlier + counts[cwd], time.time())
    if after != before:
        _write(_unlocated_file(), list(after.values())[-MOST_NOTES:])


def list_unlocated() -> list[UnlocatedNote]:
    """The notes of folders that still exist and whose events were recorded without a project."""
    rows = _read(_unlocated_file(), lambda row: UnlocatedNote(**row))
    return [each for each in rows if os.path.isdir(each.folder)]  # noqa: PTH112


def note_dropped(counts: Mapping[str, int]) -> None:
    """Add to the number of commits of each folder that were counted for nobody."""
    if not counts:
        return
    after = {each.folder: each for each in list_dropped()}
    for cwd, number in counts.items():
        earlier = after.pop(cwd).commits if cwd in after else 0
        after[cwd] = DroppedNote(cwd, NO_AGENT, earlier + number, time.time())
    _write(_dropped_file(), list(after.values())[-MOST_NOTES:])


def list_dropped() -> list[DroppedNote]:
    """The commits that were counted for nobody, by folder, if that was not long ago."""
    rows = _read(_dropped_file(), lambda row: DroppedNote(**row))
    recent = time.time() - DROPPED_SHOWN
    return [each for each in rows if each.at > recent and os.path.isdir(each.folder)]  # noqa: PTH112


def _read(file: Path, parse: Callable[[dict[str, Any]], N]) -> list[N]:
    try:
        rows: Any = json.loads(file.read_text(encoding="utf-8"))
        return [parse(row) for row in rows]
    except (FileNotFoundError, ValueError, TypeError):
        return []  # notes are only a help: those of another version are ignored


def _write(file: Path, rows: Sequence[UnlocatedNote] | Sequence[DroppedNote]) -> None:
    if not rows:
        file.unlink(missing_ok=True)
        return
    dirs.write_private(file, json.dumps([each._asdict() for each in rows]))


def _failure_file() -> Path:
    return dirs.state_folder() / "flush-failed"


def _unlocated_file() -> Path:
    return dirs.state_folder() / "events-without-project.json"


def _dropped_file() -> Path:
    return dirs.state_folder() / "commits-of-nobody.json"
