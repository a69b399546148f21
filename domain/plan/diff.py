"""The difference between two texts and between two states of a repository, as data.

Line numbers begin at 1. A line's text has no line feed at its end; other line breaks belong to it.
"""

from enum import StrEnum
from typing import NamedTuple

from herdbook.domain.plan.model import LineType


class DiffChange(StrEnum):
    """What happened to a file."""

    ADDED = "added"
    REMOVED = "removed"
    MODIFIED = "modified"
    RENAMED = "renamed"
    COPIED = "copied"
    RETYPED = "retyped"


class DiffLine(NamedTuple):
    """A line of a hunk with its number on each side; the side that it is not on has None.

    `is_open` means that no line feed ends it: it is the last line of its text.
    """

    type: LineType
    old: int | None
    new: int | None
    text: str
    is_open: bool = False


class Hunk(NamedTuple):
    """Lines that changed, with unchanged ones around them.

    A side without lines has the number of the line before it, 0 at the beginning.
    """

    old_start: int
    old_count: int
    new_start: int
    new_count: int
    heading: str
    lines: tuple[DiffLine, ...]


class ChangedFile(NamedTuple):
    """A file that differs, with the ids and modes of both sides.

    Paths are as git has them. Counts are None if git does not compare the file by lines: it is
    binary, or too large; then the sizes are known.
    """

    path: str
    old_path: str
    change: DiffChange
    old_id: str
    new_id: str
    old_mode: str
    new_mode: str
    added: int | None = None
    removed: int | None = None
    old_size: int | None = None
    new_size: int | None = None
