"""What git knows of the folders and commits that events tell of."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol


class FolderUnusable(Exception):
    """A repository that git, the system or a path's own characters make unusable; says why."""


class FolderFacts(NamedTuple):
    """The repository that a folder lies in, if any, and where git is asked about it."""

    repository_id: str | None
    git_folder: str


class CommitFacts(NamedTuple):
    """A commit, by its whole hash, and the first line of its message."""

    commit_hash: str
    subject: str


class GitHistory(Protocol):
    """Answers questions about folders; FolderUnusable where it cannot."""

    def find_folder(self, folder: str) -> FolderFacts | None:
        """What is known of a folder; None if there is no such folder."""

    def find_commit(self, git_folder: str, name: str) -> CommitFacts | None:
        """The commit of that name or hash; None if there is none."""

    def find_commits_at(self, git_folder: str, seconds: Sequence[int]) -> list[CommitFacts | None]:
        """The commits that were made at these times, in seconds since 1970; None where none is."""
