"""Where events happened: the repository and the commit of each, as git tells it, folder by folder.

Trouble with a folder concerns its own events alone. They go without a project, and a note says why,
which `herdbook doctor` shows until an event of that folder finds its project, or the folder goes.
"""

import json
import os
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from herdbook.adapters.git import folder_for_git, history
from herdbook.adapters.git.config import Unsure
from herdbook.adapters.git.discovery import holder_above
from herdbook.adapters.git.git_process import elsewhere
from herdbook.adapters.user_state import dirs, spool
from herdbook.adapters.workspace import Workspace
from herdbook.domain.errors import HerdbookError
from herdbook.domain.record.events import Event, is_commit, told_hash

MOST_NOTES = 50
TROUBLE = (HerdbookError, OSError, ValueError)
"""What comes of a folder that git, the system or a path's own characters make unusable."""


class Located(NamedTuple):
    """Events with their places; the folders that were understood, and why others were not."""

    events: list[Event]
    understood: set[str]
    troubles: dict[str, str]


class Note(NamedTuple):
    """How many events of a folder went without their project, why, and when it was last so."""

    folder: str
    reason: str
    events: int
    at: float


def locate(variables: Mapping[str, str], events: Sequence[spool.Event]) -> Located:
    """The events with what git knows of the places where they happened; raises nothing for them."""
    search = _Search(elsewhere(variables))
    found = [search.place(Event(*each)) for each in events]
    waiting: dict[str, list[int]] = defaultdict(list)
    for number, event in enumerate(found):
        if is_commit(event) and event.project is not None:
            known = told_hash(event)
            if known is None:
                waiting[search.folder_for_git(event.cwd)].append(number)
            else:
                found[number] = search.name_commit(event, known)
    for folder, numbers in waiting.items():
        search.find_commits(folder, found, numbers)
    understood = {cwd for cwd, there in search.known.items() if there is not None}
    return Located(found, understood - search.troubles.keys(), search.troubles)


class _Search:
    """What is known of each folder so far; a repository that made trouble is not asked again."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        self.variables = variables
        self.known: dict[str, Workspace | None] = {}
        self.troubles: dict[str, str] = {}
        self._broken: dict[str, str] = {}

    def place(self, event: Event) -> Event:
        """The event with its project, where that can be told."""
        if event.cwd not in self.known:
            self.known[event.cwd] = self._look(event.cwd)
        there = self.known[event.cwd]
        return event if there is None else event._replace(project=there.repository_id)

    def folder_for_git(self, cwd: str) -> str:
        there = self.known[cwd]
        return cwd if there is None or there.facts is None else folder_for_git(there.facts)

    def name_commit(self, event: Event, commit_hash: str) -> Event:
        """The event with the commit that its hook has told of."""
        try:
            named = history.named(self.folder_for_git(event.cwd), commit_hash, self.variables)
        except TROUBLE as error:
            self.troubles[event.cwd] = str(error)
            return event
        return _with_commit(event, named)

    def find_commits(self, folder: str, events: list[Event], numbers: list[int]) -> None:
        """Put the commits that hooks told of without naming them to these events of a folder."""
        numbers.sort(key=lambda number: events[number].at)
        seconds = [events[number].at // 1_000_000 for number in numbers]
        try:
            moves = history.moves(folder, self.variables)
        except TROUBLE as error:
            self.troubles.update({events[number].cwd: str(error) for number in numbers})
            return
        for number, commit in zip(numbers, history.told_of(moves, seconds), strict=True):
            events[number] = _with_commit(events[number], commit)

    def _look(self, cwd: str) -> Workspace | None:
        if not cwd or not os.path.isdir(cwd):  # noqa: PTH112 - takes any text for a path
            return None
        holder = _holder(cwd)
        if holder in self._broken:
            self.troubles[cwd] = self._broken[holder]
            return None
        there = Workspace(Path(cwd), self.variables)
        try:
            doubt = there.doubt if there.repository_id is None else None
        except TROUBLE as error:
            doubt = str(error)
            if holder is not None:
                self._broken[holder] = doubt
        if doubt is None:
            return there
        self.troubles[cwd] = doubt
        return None


def _holder(cwd: str) -> str | None:
    """The folder with the `.git` that a folder lies in."""
    try:
        return holder_above(os.path.join(os.path.realpath(cwd), "."))  # noqa: PTH118
    except Unsure:
        return None


def _with_commit(event: Event, commit: history.Revision | None) -> Event:
    if commit is None:
        return event
    return event._replace(commit_hash=commit.commit_hash, subject=commit.subject)


def note(located: Located) -> None:
    """Keep why events went without their project, and drop what is understood by now."""
    counts: dict[str, int] = defaultdict(int)
    for event in located.events:
        counts[event.cwd] += event.cwd in located.troubles
    before = {each.folder: each for each in notes()}
    after = {cwd: each for cwd, each in before.items() if cwd not in located.understood}
    for cwd, reason in located.troubles.items():
        earlier = before[cwd].events if cwd in before else 0
        after.pop(cwd, None)
        after[cwd] = Note(cwd, reason, earlier + counts[cwd], time.time())
    if after != before:
        _write(list(after.values())[-MOST_NOTES:])


def notes() -> list[Note]:
    """The folders whose events went without their project and that are still there."""
    try:
        text = _file().read_text(encoding="utf-8")
    except FileNotFoundError:
        return []
    return [each for each in _read(text) if os.path.isdir(each.folder)]  # noqa: PTH112


def _read(text: str) -> Iterable[Note]:
    try:
        rows: Any = json.loads(text)
        return [Note(**row) for row in rows]
    except (ValueError, TypeError):
        return []  # notes are a help, and those of another version are no trouble of their own


def _write(rows: list[Note]) -> None:
    file = _file()
    if not rows:
        file.unlink(missing_ok=True)
        return
    dirs.make_private(file.parent)
    dirs.write_private(file, json.dumps([each._asdict() for each in rows]))


def _file() -> Path:
    return dirs.state_folder() / "events-without-project.json"
