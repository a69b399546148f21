"""Finds the repository and the commit of each event with git, folder by folder.

A problem with a folder affects its own events only: they are recorded without a project.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from herdbook.domain.record.events import HookEvent, Meaning
from herdbook.ports.world.git_history import (
    CommitFacts,
    FolderFacts,
    FolderUnusable,
    GitHistory,
)


class LocatedEvents(NamedTuple):
    """Located events, the folders that were located, and the problems of the others."""

    events: list[HookEvent]
    located_folders: set[str]
    problems: dict[str, str]

    def counts(self) -> dict[str, int]:
        """The number of events of each folder without a project because of a problem."""
        found: dict[str, int] = defaultdict(int)
        for event in self.events:
            found[event.cwd] += event.cwd in self.problems
        return found


def locate_events(history: GitHistory, events: Sequence[HookEvent]) -> LocatedEvents:
    """Locate events with git; a folder's problem is returned, not raised."""
    search = _Search(history)
    found = [search.locate(event) for event in events]
    waiting: dict[str, list[int]] = defaultdict(list)
    for number, event in enumerate(found):
        if event.meaning is Meaning.COMMIT and event.project is not None:
            known = event.commit_hash
            if known is None:
                waiting[search.git_folder(event.cwd)].append(number)
            else:
                found[number] = search.name_commit(event, known)
    for folder, numbers in waiting.items():
        search.find_commits(folder, found, numbers)
    located = {cwd for cwd, facts in search.known.items() if facts is not None}
    return LocatedEvents(found, located - search.problems.keys(), search.problems)


class _Search:
    """The folders that were looked up so far."""

    def __init__(self, history: GitHistory) -> None:
        self._history = history
        self.known: dict[str, FolderFacts | None] = {}
        self.problems: dict[str, str] = {}

    def locate(self, event: HookEvent) -> HookEvent:
        """The event with its project, if that can be found."""
        if event.cwd not in self.known:
            try:
                self.known[event.cwd] = self._history.find_folder(event.cwd)
            except FolderUnusable as error:
                self.known[event.cwd] = None
                self.problems[event.cwd] = str(error)
        facts = self.known[event.cwd]
        return event if facts is None else event._replace(project=facts.repository_id)

    def git_folder(self, cwd: str) -> str:
        """The folder in which git runs for an event's folder."""
        facts = self.known[cwd]
        return cwd if facts is None else facts.git_folder

    def name_commit(self, event: HookEvent, commit_hash: str) -> HookEvent:
        """The event with the commit that its hook named."""
        try:
            commit = self._history.find_commit(self.git_folder(event.cwd), commit_hash)
        except FolderUnusable as error:
            self.problems[event.cwd] = str(error)
            return event
        return _with_commit(event, commit)

    def find_commits(self, folder: str, events: list[HookEvent], numbers: list[int]) -> None:
        """Find the commits of these events of a folder, whose hooks named none, by their times."""
        numbers.sort(key=lambda number: events[number].at)
        seconds = [events[number].at // 1_000_000 for number in numbers]
        try:
            commits = self._history.find_commits_at(folder, seconds)
        except FolderUnusable as error:
            self.problems.update({events[number].cwd: str(error) for number in numbers})
            return
        for number, commit in zip(numbers, commits, strict=True):
            events[number] = _with_commit(events[number], commit)


def _with_commit(event: HookEvent, commit: CommitFacts | None) -> HookEvent:
    if commit is None:
        return event
    return event._replace(commit_hash=commit.commit_hash, subject=commit.subject)
