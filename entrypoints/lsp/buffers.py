"""The texts that are open in the editor, with the positions of comments in them.

The editor's changes come in order, in one thread; other threads read. A text is never changed in
place, so a reader's snapshot stays as it is.
"""

import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, NamedTuple

from herdbook.domain.errors import InvalidValue
from herdbook.entrypoints.lsp.comment_positions import (
    LineEdit,
    Mark,
    apply_edit,
    edit_range,
    move_mark,
    replace_text,
)
from herdbook.entrypoints.lsp.lsp_types import number, optional, text
from herdbook.entrypoints.lsp.positions import Encoding, point, split_lines

Marks = Mapping[str, Mark]
MOST_CLOSED = 200
"""The number of closed files whose marks are remembered."""


class Snapshot(NamedTuple):
    """A text at one moment, and the marks in it."""

    lines: list[str]
    marks: Marks


class Buffer(NamedTuple):
    """A text as the editor has it, and the lines that were last saved."""

    uri: str
    version: int | None
    snapshot: Snapshot
    saved_lines: list[str]


class Buffers:
    """All open texts, by path."""

    def __init__(self) -> None:
        self.encoding = Encoding.UTF16
        self._mutex = threading.Lock()
        self._open: dict[str, Buffer] = {}
        self._closed: OrderedDict[str, Snapshot] = OrderedDict()

    def find(self, path: str) -> Buffer | None:
        """The text of a file; None if it is not open."""
        return self._open.get(path)

    def paths(self) -> list[str]:
        """The paths of the open files."""
        with self._mutex:
            return list(self._open)

    def find_closed(self, path: str) -> Snapshot | None:
        """The last snapshot of a file that was closed; None if it had no marks or was dropped."""
        return self._closed.get(path)

    def open(self, path: str, uri: str, version: int | None, content: str) -> None:
        """Add an opened text; the marks from when it was closed are located in it again."""
        lines = split_lines(content)
        with self._mutex:
            closed = self._closed.pop(path, None)
            marks = {} if closed is None else carry_marks(closed, lines)
            self._open[path] = Buffer(uri, version, Snapshot(lines, marks), lines)

    def change(self, path: str, version: int | None, changes: list[Any]) -> None:
        """Apply the editor's changes in order; InvalidValue if the file is not open."""
        with self._mutex:
            buffer = self._open.get(path)
            if buffer is None:
                raise InvalidValue("textDocument.uri", "was changed, but is not open")
            snapshot = buffer.snapshot
            for each in changes:
                snapshot = _apply_change(snapshot, self._edit(snapshot.lines, each))
            self._open[path] = buffer._replace(version=version, snapshot=snapshot)

    def _edit(self, lines: list[str], change: Any) -> LineEdit:
        new = text(change, "text")
        if change.get("range") is None:
            return replace_text(lines, split_lines(new))
        ends = [
            point(
                lines,
                number(change, "range", end, "line"),
                number(change, "range", end, "character"),
                self.encoding,
            )
            for end in ("start", "end")
        ]
        return edit_range(lines, ends[0], ends[1], new)

    def save(self, path: str) -> None:
        """Remember the current lines as the saved ones."""
        with self._mutex:
            buffer = self._open.get(path)
            if buffer is not None:
                self._open[path] = buffer._replace(saved_lines=buffer.snapshot.lines)

    def close(self, path: str) -> None:
        """Remove a text, and remember its marks."""
        with self._mutex:
            buffer = self._open.pop(path, None)
            if buffer is not None and buffer.snapshot.marks:
                self._closed[path] = buffer.snapshot
                while len(self._closed) > MOST_CLOSED:
                    self._closed.popitem(last=False)

    def set_marks(self, path: str, snapshot: Snapshot, marks: Marks) -> bool:
        """Set the marks of a text, unless it has changed since; returns whether they were set."""
        with self._mutex:
            buffer = self._open.get(path)
            if buffer is None or buffer.snapshot is not snapshot:
                return False
            self._open[path] = buffer._replace(snapshot=Snapshot(snapshot.lines, dict(marks)))
            return True


def carry_marks(snapshot: Snapshot, lines: list[str]) -> dict[str, Mark]:
    """The marks of a text, located in another version of it."""
    if snapshot.lines == lines:
        return dict(snapshot.marks)
    return dict(_apply_change(snapshot, replace_text(snapshot.lines, lines)).marks)


def _apply_change(snapshot: Snapshot, change: LineEdit) -> Snapshot:
    lines = apply_edit(snapshot.lines, change)
    return Snapshot(
        lines,
        {key: move_mark(mark, snapshot.lines, change) for key, mark in snapshot.marks.items()},
    )


def version_of(params: Any) -> int | None:
    """The version number of a text; None from editors that send none."""
    version = optional(params, "textDocument", "version")
    return None if version is None else number(params, "textDocument", "version")
