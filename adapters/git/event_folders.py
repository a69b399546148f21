"""The git facts of the folders of events: implements the port `GitHistory`."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from herdbook.adapters.git import folder_for_git, history
from herdbook.adapters.git.config import NeedsGit
from herdbook.adapters.git.discovery import repository_above
from herdbook.adapters.git.git_process import without_repository_variables
from herdbook.adapters.workspace import Workspace
from herdbook.domain.errors import HerdbookError
from herdbook.ports.world.git_history import CommitFacts, FolderFacts, FolderUnusable

R = TypeVar("R")

FAILURES = (HerdbookError, OSError, ValueError)
"""The errors for a folder that git, the system or the characters of its path make unusable."""


class EventFolders:
    """The folders of events; a repository that failed once is not asked again.

    Variables of the environment that name a repository are ignored.
    """

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._variables = without_repository_variables(variables)
        self._broken: dict[str, str] = {}

    def find_folder(self, folder: str) -> FolderFacts | None:
        """The facts of a folder; None if it does not exist. Raises FolderUnusable."""
        if not folder or not os.path.isdir(folder):
            return None
        repository = _repository_folder(folder)
        if repository in self._broken:
            raise FolderUnusable(self._broken[repository])
        workspace = Workspace(Path(folder), self._variables)
        try:
            problem = workspace.repository_problem if workspace.repository_id is None else None
        except FAILURES as error:
            if repository is not None:
                self._broken[repository] = str(error)
            raise FolderUnusable(str(error)) from error
        if problem is not None:
            raise FolderUnusable(problem)
        facts = workspace.facts
        return FolderFacts(
            workspace.repository_id, folder if facts is None else folder_for_git(facts)
        )

    def find_commit(self, git_folder: str, name: str) -> CommitFacts | None:
        """The commit of a name or hash; None if there is none. Raises FolderUnusable."""
        found = _ask_git(lambda: history.find_revision(git_folder, name, self._variables))
        return None if found is None else CommitFacts(*found)

    def find_commits_at(self, git_folder: str, seconds: Sequence[int]) -> list[CommitFacts | None]:
        """The commit made at each of these times, or None. Raises FolderUnusable."""
        moves = _ask_git(lambda: history.head_moves(git_folder, self._variables))
        found = history.match_commits(moves, seconds)
        return [None if each is None else CommitFacts(*each) for each in found]


def _ask_git(question: Callable[[], R]) -> R:
    try:
        return question()
    except FAILURES as error:
        raise FolderUnusable(str(error)) from error


def _repository_folder(folder: str) -> str | None:
    """The folder at or above a folder that has the `.git`; None if git itself must tell."""
    try:
        return repository_above(os.path.join(os.path.realpath(folder), "."))
    except NeedsGit:
        return None
