"""Parse what `git diff-tree` prints: changed files (`--raw --numstat -z`), and patches (`-p`).

Names of files are taken from the first only, where they end with NUL. In a patch they are quoted
and ignored: a section is recognized by the ids of its two sides. Whatever a repository holds, it is
bytes after the first column of a line, and never read as a part of the format.
"""

import os
import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from herdbook.domain.plan.diff import ChangedFile, DiffChange, DiffLine, Hunk
from herdbook.domain.plan.model import LineType

NOTHING: Final = "0"
"""What the id of a side consists of that does not exist."""
_CHANGES: Final = {
    "A": DiffChange.ADDED,
    "C": DiffChange.COPIED,
    "D": DiffChange.REMOVED,
    "M": DiffChange.MODIFIED,
    "R": DiffChange.RENAMED,
    "T": DiffChange.RETYPED,
}
_TWO_NAMES: Final = (DiffChange.RENAMED, DiffChange.COPIED)
_INDEX: Final = re.compile(rb"index ([0-9a-f]+)\.\.([0-9a-f]+)(?: [0-7]+)?")
_HUNK: Final = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@ ?(.*)", re.DOTALL)
_TYPES: Final = {b"+": LineType.ADDED, b"-": LineType.REMOVED, b" ": LineType.CONTEXT}


class PatchSection(NamedTuple):
    """The hunks of one file, and whether the patch ended before they did."""

    old_id: str
    new_id: str
    hunks: tuple[Hunk, ...]
    is_cut: bool = False


def parse_changed_files(output: bytes) -> list[ChangedFile]:
    """The files of `--raw --numstat -z`, in git's order; what is cut off at the end is left out."""
    fields = iter(output.split(b"\0")[:-1])
    files: dict[str, ChangedFile] = {}
    try:
        for field in fields:
            if field.startswith(b":"):
                file = _parse_raw(field, fields)
                files[file.path] = file
            elif field:
                _add_counts(field, fields, files)
    except StopIteration:  # the output was cut within an entry, and the others are whole
        return list(files.values())
    return list(files.values())


def _parse_raw(field: bytes, fields: Iterator[bytes]) -> ChangedFile:
    old_mode, new_mode, old_id, new_id, letter = field[1:].decode("ascii").split(" ")
    change = _CHANGES.get(letter[0], DiffChange.MODIFIED)
    old_path = os.fsdecode(next(fields))
    path = os.fsdecode(next(fields)) if change in _TWO_NAMES else old_path
    return ChangedFile(path, old_path, change, old_id, new_id, old_mode, new_mode)


def _add_counts(field: bytes, fields: Iterator[bytes], files: dict[str, ChangedFile]) -> None:
    added, removed, name = field.split(b"\t", 2)
    if not name:
        next(fields)  # the old name
        name = next(fields)
    path = os.fsdecode(name)
    if added.isdigit() and removed.isdigit() and path in files:
        files[path] = files[path]._replace(added=int(added), removed=int(removed))


def parse_patch(output: bytes) -> list[PatchSection]:
    """The sections of a patch, also of one that is cut off at any byte."""
    sections: list[PatchSection] = []
    lines = _PatchLines(output)
    while (line := lines.take()) is not None:
        if line.startswith(b"diff --git "):
            sections.append(PatchSection("", "", ()))
        elif sections and (index := _INDEX.fullmatch(line)):
            ids = index[1].decode("ascii"), index[2].decode("ascii")
            sections[-1] = PatchSection(*ids, ())
        elif sections and (head := _HUNK.fullmatch(line)):
            hunk, is_cut = _parse_hunk(head, lines)
            last = sections[-1]
            sections[-1] = last._replace(hunks=(*last.hunks, hunk), is_cut=is_cut)
    return sections


class _PatchLines:
    """The lines of a patch, ended by line feeds alone; one that is not ended is not told."""

    def __init__(self, output: bytes) -> None:
        self._lines = output.split(b"\n")[:-1]
        self._at = 0

    def take(self) -> bytes | None:
        self._at += 1
        return self._lines[self._at - 1] if self._at <= len(self._lines) else None

    def take_marker(self) -> bool:
        """Whether a note follows that the line before has no line feed; it is skipped."""
        found = self._at < len(self._lines) and self._lines[self._at].startswith(b"\\")
        self._at += found
        return found


def _parse_hunk(head: "re.Match[bytes]", lines: _PatchLines) -> tuple[Hunk, bool]:
    """A hunk, and whether the patch ended within it; it has the lines that its head counts."""
    old_start, new_start = int(head[1]), int(head[3])
    old_count, new_count = (1 if each is None else int(each) for each in (head[2], head[4]))
    old, new = old_start, new_start
    left = [old_count, new_count]
    found: list[DiffLine] = []
    while any(left) and (line := lines.take()) is not None:
        type_ = _TYPES.get(line[:1], LineType.CONTEXT)
        is_old, is_new = type_ is not LineType.ADDED, type_ is not LineType.REMOVED
        text = line[1:].decode("utf-8", "surrogateescape")
        numbers = old if is_old else None, new if is_new else None
        found.append(DiffLine(type_, *numbers, text, lines.take_marker()))
        old, new = old + is_old, new + is_new
        left = [left[0] - is_old, left[1] - is_new]
    heading = head[5].decode("utf-8", "surrogateescape")
    hunk = Hunk(old_start, old_count, new_start, new_count, heading, tuple(found))
    return hunk, any(left)
