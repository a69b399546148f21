"""The texts that are open in the editor, and the marks of remarks beside them.

The editor's changes come in order, in one thread; questions come from many. A text is never
changed in place, so whoever has one keeps it.
"""

import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, NamedTuple

from herdbook.domain.errors import InvalidValue
from herdbook.entrypoints.lsp.comment_positions import (
    Edited,
    Mark,
    applied,
    edited,
    moved,
    rewritten,
)
from herdbook.entrypoints.lsp.lsp_types import number, offered, text
from herdbook.entrypoints.lsp.positions import Encoding, point, split

Marks = Mapping[str, Mark]
MOST_REMEMBERED = 200
"""Of so many closed files it is known where their marks stood."""


class Sheet(NamedTuple):
    """A text at one moment, and where the marks in its margin stood."""

    lines: list[str]
    marks: Marks


class Buffer(NamedTuple):
    """A text as the editor has it, and as it was last saved."""

    uri: str
    version: int | None
    sheet: Sheet
    saved: list[str]


class Buffers:
    """All texts that are open, by their paths."""

    def __init__(self) -> None:
        self.encoding = Encoding.UTF16
        self._mutex = threading.Lock()
        self._open: dict[str, Buffer] = {}
        self._remembered: OrderedDict[str, Sheet] = OrderedDict()

    def find(self, path: str) -> Buffer | None:
        """The text of a file that is open."""
        return self._open.get(path)

    def paths(self) -> list[str]:
        """The files that are open."""
        with self._mutex:
            return list(self._open)

    def remembered(self, path: str) -> Sheet | None:
        """How a file that is not open was left."""
        return self._remembered.get(path)

    def open(self, path: str, uri: str, version: int | None, content: str) -> None:
        """Take over a text from the disk; the marks of when it was closed are found in it again."""
        lines = split(content)
        with self._mutex:
            left = self._remembered.pop(path, None)
            marks = {} if left is None else carried(left, lines)
            self._open[path] = Buffer(uri, version, Sheet(lines, marks), lines)

    def change(self, path: str, version: int | None, changes: list[Any]) -> None:
        """Apply what was typed, change by change."""
        with self._mutex:
            buffer = self._open.get(path)
            if buffer is None:
                raise InvalidValue("textDocument.uri", "was changed, but is not open")
            sheet = buffer.sheet
            for each in changes:
                sheet = _turned(sheet, self._edit(sheet.lines, each))
            self._open[path] = buffer._replace(version=version, sheet=sheet)

    def _edit(self, lines: list[str], change: Any) -> Edited:
        new = text(change, "text")
        if change.get("range") is None:
            return rewritten(lines, split(new))
        ends = [
            point(
                lines,
                number(change, "range", end, "line"),
                number(change, "range", end, "character"),
                self.encoding,
            )
            for end in ("start", "end")
        ]
        return edited(lines, ends[0], ends[1], new)

    def save(self, path: str) -> None:
        """Write down that the text lies on the disk as it is."""
        with self._mutex:
            buffer = self._open.get(path)
            if buffer is not None:
                self._open[path] = buffer._replace(saved=buffer.sheet.lines)

    def close(self, path: str) -> None:
        """Let go of a text, and remember where its marks stood."""
        with self._mutex:
            buffer = self._open.pop(path, None)
            if buffer is not None and buffer.sheet.marks:
                self._remembered[path] = buffer.sheet
                while len(self._remembered) > MOST_REMEMBERED:
                    self._remembered.popitem(last=False)

    def put_marks(self, path: str, sheet: Sheet, marks: Marks) -> bool:
        """Keep these marks, unless the text has changed since; whether they were kept."""
        with self._mutex:
            buffer = self._open.get(path)
            if buffer is None or buffer.sheet is not sheet:
                return False
            self._open[path] = buffer._replace(sheet=Sheet(sheet.lines, dict(marks)))
            return True


def carried(sheet: Sheet, lines: list[str]) -> dict[str, Mark]:
    """Where the marks of a text stand in another version of it."""
    if sheet.lines == lines:
        return dict(sheet.marks)
    return dict(_turned(sheet, rewritten(sheet.lines, lines)).marks)


def _turned(sheet: Sheet, change: Edited) -> Sheet:
    lines = applied(sheet.lines, change)
    return Sheet(
        lines, {key: moved(mark, sheet.lines, change) for key, mark in sheet.marks.items()}
    )


def version_of(params: Any) -> int | None:
    """The version that an editor gives a text; some give none."""
    given = offered(params, "textDocument", "version")
    return None if given is None else number(params, "textDocument", "version")
