"""Notes about flushes in the state folder, for `herdbook doctor`: implements the port `FlushNotes`.

A folder whose events were recorded without a project is shown until the project of an event of that
folder is found, or the folder is removed.
"""

import json
import os
import time
from collections.abc import Container, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from herdbook.adapters.user_state import dirs

MOST_NOTES = 50


class UnlocatedNote(NamedTuple):
    """How many events of a folder were recorded without a project, why, and when the last time."""

    folder: str
    reason: str
    events: int
    at: float


def note_failure(reason: str | None) -> None:
    """Store the reason why the last flush failed; None if it succeeded."""
    file = _failure_file()
    if reason is None:
        file.unlink(missing_ok=True)
        return
    try:
        dirs.make_private(file.parent)
        dirs.write_private(file, reason)
    except OSError:  # a full disk refuses the note too; the flush's own error must show
        return


def last_failure() -> str | None:
    """The reason why the last flush failed; None if it succeeded."""
    try:
        return _failure_file().read_text(encoding="utf-8")
    except FileNotFoundError:
        return None


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
        _write(list(after.values())[-MOST_NOTES:])


def list_unlocated() -> list[UnlocatedNote]:
    """The notes of folders that still exist and whose events were recorded without a project."""
    try:
        text = _unlocated_file().read_text(encoding="utf-8")
    except FileNotFoundError:
        return []
    return [each for each in _read(text) if os.path.isdir(each.folder)]  # noqa: PTH112


def _read(text: str) -> Iterable[UnlocatedNote]:
    try:
        rows: Any = json.loads(text)
        return [UnlocatedNote(**row) for row in rows]
    except (ValueError, TypeError):
        return []  # notes are only a help: those of another version are ignored


def _write(rows: list[UnlocatedNote]) -> None:
    file = _unlocated_file()
    if not rows:
        file.unlink(missing_ok=True)
        return
    dirs.make_private(file.parent)
    dirs.write_private(file, json.dumps([each._asdict() for each in rows]))


def _failure_file() -> Path:
    return dirs.state_folder() / "flush-failed"


def _unlocated_file() -> Path:
    return dirs.state_folder() / "events-without-project.json"
