"""Notes about flushes in the state folder, for `herdbook doctor`: the port `FlushNotes`.

A folder whose events went without their project is shown until an event of that folder finds its
project, or the folder goes.
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
    """How many events of a folder went without their project, why, and when it was last so."""

    folder: str
    reason: str
    events: int
    at: float


def note_failure(reason: str | None) -> None:
    """Keep why the last flush did not work; None if it did."""
    file = _failure_file()
    if reason is None:
        file.unlink(missing_ok=True)
        return
    try:
        dirs.make_private(file.parent)
        dirs.write_private(file, reason)
    except OSError:  # where the disk is full it cannot be noted either, and must not hide why
        return


def last_failure() -> str | None:
    """Why the last flush did not work; None if it did."""
    try:
        return _failure_file().read_text(encoding="utf-8")
    except FileNotFoundError:
        return None


def note_unlocated(
    counts: Mapping[str, int], troubles: Mapping[str, str], understood: Container[str]
) -> None:
    """Keep why events of folders went without their project, and drop what is understood by now."""
    before = {each.folder: each for each in list_unlocated()}
    after = {cwd: each for cwd, each in before.items() if cwd not in understood}
    for cwd, reason in troubles.items():
        earlier = before[cwd].events if cwd in before else 0
        after.pop(cwd, None)
        after[cwd] = UnlocatedNote(cwd, reason, earlier + counts[cwd], time.time())
    if after != before:
        _write(list(after.values())[-MOST_NOTES:])


def list_unlocated() -> list[UnlocatedNote]:
    """The folders whose events went without their project and that are still there."""
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
        return []  # notes are a help, and those of another version are no trouble of their own


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
