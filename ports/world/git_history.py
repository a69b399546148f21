"""Git facts about the folders and commits of events."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol


class FolderUnusable(Exception):
    """A folder that git, the system or the characters of its path make unusable; has the reason."""


class FolderFacts(NamedTuple):
    """The repository that contains a folder, if any, and the folder in which git runs for it."""

    repository_id: str | None
    git_folder: str


class CommitFacts(NamedTuple):
    """A commit, by its whole hash, and the first line of its message."""

    commit_hash: str
    subject: str


class GitHistory(Protocol):
    """Answers questions about folders; raises FolderUnusable if it cannot."""

    def find_folder(self, folder: str) -> FolderFacts | None:
        """The facts of a folder; None if it does not exist."""

    def find_commit(self, git_folder: str, name: str) -> CommitFacts | None:
        """The commit of a name or hash; None if there is none."""

    def find_commits_at(self, git_folder: str, seconds: Sequence[int]) -> list[CommitFacts | None]:
        """The commit made at each of these times, in seconds since 1970, or None."""
