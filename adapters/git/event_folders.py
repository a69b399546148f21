"""The git facts of the folders of events: implements the port `GitHistory`.

Commits are found by their names, and by their times in the reflog of a worktree's HEAD.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from herdbook.adapters.git import folder_for_git
from herdbook.adapters.git.config import NeedsGit
from herdbook.adapters.git.discovery import repository_above
from herdbook.adapters.git.git_process import ask_git, without_repository_variables
from herdbook.adapters.workspace import Workspace
from herdbook.domain.errors import HerdbookError
from herdbook.ports.world.git_history import CommitFacts, FolderFacts, FolderUnusable

MAX_MOVES = 2_000
"""How many entries of the reflog are read."""
FAILURES = (HerdbookError, OSError, ValueError)
"""The errors for a folder that git, the system or the characters of its path make unusable."""


class HeadMove(NamedTuple):
    """A reflog entry: the time in seconds since 1970, the commit, and whether it was made then."""

    at: int
    commit: CommitFacts
    made: bool


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
        with _translate_failures():
            return find_commit(git_folder, name, self._variables)

    def find_commits_at(self, git_folder: str, seconds: Sequence[int]) -> list[CommitFacts | None]:
        """The commit made at each of these times, or None. Raises FolderUnusable."""
        form = "--format=%gd%x00%H%x00%gs%x00%s"
        words = ["-g", f"-{MAX_MOVES}", "--date=unix", form, "HEAD", "--"]
        moves = []
        with _translate_failures():
            lines = _read_log(git_folder, words, self._variables)
        for line in lines:
            place, commit_hash, action, subject = line.split("\0", 3)
            at = place.partition("@{")[2].rstrip("}")
            if at.isdecimal():
                commit = CommitFacts(commit_hash, subject)
                moves.append(HeadMove(int(at), commit, made=action.startswith("commit")))
        return match_commits(moves, seconds)


def find_commit(folder: str, name: str, environment: Mapping[str, str]) -> CommitFacts | None:
    """The commit with this name in the repository of a folder; None if there is none."""
    words = ["-1", "--format=%H%x00%s", "--end-of-options", name, "--"]
    for line in _read_log(folder, words, environment):
        commit_hash, _, subject = line.partition("\0")
        return CommitFacts(commit_hash, subject)
    return None


def _read_log(folder: str, words: list[str], environment: Mapping[str, str]) -> list[str]:
    """The lines of `git log`, none if it refuses."""
    variables = without_repository_variables(environment)
    status, output, _ = ask_git(["-C", folder, "log", *words], variables)
    return output.decode("utf-8", "replace").splitlines() if status == 0 else []


@contextmanager
def _translate_failures() -> Iterator[None]:
    """Raise FolderUnusable for what makes a folder unusable."""
    try:
        yield
    except FAILURES as error:
        raise FolderUnusable(str(error)) from error


def match_commits(moves: Sequence[HeadMove], seconds: Sequence[int]) -> list[CommitFacts | None]:
    """The commits of post-commit hooks that ran in this order and at these times.

    The moves are the latest first, as far as git has kept them. Git counts whole seconds, and a
    hook runs a little later than its commit. So the last hook is matched with the last commit
    before it, the hook before it with the last remaining one, and so on.
    """
    left = [move for move in moves if move.made]
    found: list[CommitFacts | None] = []
    for second in reversed(seconds):
        while left and left[0].at > second:
            left.pop(0)
        found.append(left.pop(0).commit if left else None)
    return found[::-1]


def _repository_folder(folder: str) -> str | None:
    """The folder at or above a folder that has the `.git`; None if git itself must tell."""
    try:
        return repository_above(os.path.join(os.path.realpath(folder), "."))
    except NeedsGit:
        return None
