"""The files in which backups of one space are kept."""

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

Lines = Iterable[bytes]


class BackupFiles(Protocol):
    """The backups of one space, each a file of lines under a name that sorts by its time."""

    def names(self) -> list[str]:
        """The names of the files, oldest first; a file that is being written is not one."""

    def place(self, name: str) -> str:
        """Where a file is, as messages name it."""

    def size(self, name: str) -> int:
        """How many bytes a file takes."""

    def read(self, name: str) -> Iterator[bytes]:
        """The lines of a file, without their ends.

        Raises BackupDamaged where it cannot be read to its end, and for a line without bound.
        """

    def write(self, name: str, lines: Lines, verify: Callable[[Iterator[bytes]], None]) -> None:
        """Write a file, read it back with `verify`, and only then give it its name.

        Raises StoreFull or StoreUnavailable if it cannot be written; then there is no file of that
        name, and no other one was changed.
        """

    def remove(self, name: str) -> None:
        """Remove a file; a missing one is no error."""
