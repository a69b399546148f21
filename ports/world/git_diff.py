"""What changed between two commits of a repository, read from git."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from herdbook.domain.plan.diff import ChangedFile, Hunk


class ChangedFiles(NamedTuple):
    """The files that differ, in git's order; not all of them if git named too many."""

    files: Sequence[ChangedFile]
    is_complete: bool


class FileHunks(NamedTuple):
    """The hunks of a file, and whether they are all of them."""

    hunks: tuple[Hunk, ...]
    is_complete: bool


class GitDiff(Protocol):
    """Compares commits of one repository, and runs nothing that the repository names.

    Commits are hashes that git gave before. Raises StoreBusy if git does not answer in time,
    InvalidValue with git's reason if it refuses.
    """

    def changed_files(self, base: str, head: str) -> ChangedFiles:
        """The files that differ; renames are found."""

    def file_hunks(self, base: str, head: str, file: ChangedFile, context: int) -> FileHunks:
        """The hunks of one of these files, with so many unchanged lines around them."""

    def file_lines(self, commit: str, path: str) -> list[str] | None:
        """The lines of a file in a commit, without line feeds; None if it has none to be read."""
