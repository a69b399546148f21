"""One worktree that is open in an editor: what the store remarks on its files, and where."""

import os
import stat
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from herdbook.adapters.git import changes
from herdbook.domain.location.areas import Area
from herdbook.domain.plan.model import LineType
from herdbook.entrypoints.context import AppContext
from herdbook.entrypoints.lsp.buffers import Buffers, Sheet, carried
from herdbook.entrypoints.lsp.comment_positions import Mark, moved, rewritten
from herdbook.entrypoints.lsp.positions import numbered, split
from herdbook.services.agents import editor_comments
from herdbook.services.agents.editor_comments import PhaseThread

LARGEST = 4 * 2**20
"""Larger files are not read to find a line in them."""
ATTEMPTS = 3
"""So often marks are set again because somebody typed meanwhile."""

Look = Callable[[], AppContext]


class Placed(NamedTuple):
    """A file's remarks, each with its mark, and the lines in which the marks stand."""

    uri: str | None
    version: int | None
    lines: Sequence[str]
    remarks: tuple[tuple[PhaseThread, Mark], ...]


class Workspace:
    """A worktree, or a folder outside any repository."""

    def __init__(self, look: Look, buffers: Buffers) -> None:
        here = look()
        top_level = here.workspace.facts.top_level if here.workspace.facts is not None else None
        self.look = look
        self.root = os.path.realpath(top_level or here.workspace.folder)
        self._buffers = buffers
        self._loading = threading.Lock()
        self._known: tuple[str | None, Mapping[str, list[PhaseThread]]] | None = None
        self._bases: dict[tuple[str, str], list[str] | None] = {}

    def name_of(self, path: str) -> str | None:
        """A path as the repository calls it; None for what lies outside this worktree."""
        real = os.path.realpath(path)
        inside = real.startswith(f"{self.root.rstrip('/')}/")
        return os.path.relpath(real, self.root) if inside else None

    def path_of(self, name: str) -> str | None:
        """The path of a file of the repository; None for a name that leads out of it."""
        parts = PurePosixPath(name).parts
        if not parts or name.startswith("/") or ".." in parts or "\0" in name:
            return None
        try:
            path = os.path.join(self.root, *parts)  # noqa: PTH118 - names that are no text too
            return path if self.name_of(path) is not None else None
        except ValueError:
            return None

    def forget(self) -> None:
        """Ask the store again the next time."""
        self._known = None

    def remarks(self) -> Mapping[str, list[PhaseThread]]:
        """All remarks on the initiative at hand, by the names of their files."""
        here = self.look()
        branch = None if here.workspace.facts is None else here.workspace.facts.branch
        with self._loading:
            known = self._known
            if known is not None and known[0] == branch:
                return known[1]
            # A change that comes while we read makes us read again.
            marker: tuple[str | None, Mapping[str, list[PhaseThread]]] = (branch, {})
            self._known = marker
            try:
                found = here.read(
                    Area.WORK,
                    editor_comments.initiative_comments,
                    branch,
                    here.workspace.worktree_id,
                )
            except BaseException:
                self._known = None
                raise
            grouped: dict[str, list[PhaseThread]] = {}
            for remark in found.remarks:
                name = str(PurePosixPath(remark.thread.first.file_path))
                grouped.setdefault(name, []).append(remark)
            if self._known is marker:
                self._known = (branch, grouped)
            return grouped

    def files(self) -> Iterator[str]:
        """The paths of all files that something was remarked on."""
        for name in self.remarks():
            path = self.path_of(name)
            if path is not None:
                yield path

    def remark_of(self, comment_id: str) -> PhaseThread | None:
        """The thread that begins with a remark, if it is of the initiative at hand."""
        every = (each for remarks in self.remarks().values() for each in remarks)
        return next((each for each in every if each.thread.first.id == comment_id), None)

    def placed(self, path: str) -> Placed:
        """The remarks of a file, each at its line: in what is open, else in what is on the disk."""
        name = self.name_of(path)
        remarks = [] if name is None else self.remarks().get(name, [])
        for _ in range(ATTEMPTS):
            buffer = self._buffers.find(path)
            if buffer is None:
                break
            sheet = buffer.sheet
            marks = self._marks(name or "", remarks, sheet, buffer.saved)
            if marks == sheet.marks or self._buffers.put_marks(path, sheet, marks):
                pairs = tuple((each, marks[each.thread.first.id]) for each in remarks)
                return Placed(buffer.uri, buffer.version, sheet.lines, pairs)
        lines = self._on_disk(path) if remarks else []
        left = self._buffers.remembered(path)
        known = carried(left, lines) if left is not None and lines else {}
        marks = self._marks(name or "", remarks, Sheet(lines, known), lines)
        return Placed(
            None, None, lines, tuple((each, marks[each.thread.first.id]) for each in remarks)
        )

    def _marks(
        self, name: str, remarks: Sequence[PhaseThread], sheet: Sheet, saved: list[str]
    ) -> dict[str, Mark]:
        marks = {}
        for remark in remarks:
            key = remark.thread.first.id
            known = sheet.marks.get(key)
            marks[key] = self._first_mark(name, remark, sheet, saved) if known is None else known
        return marks

    def _first_mark(self, name: str, remark: PhaseThread, sheet: Sheet, saved: list[str]) -> Mark:
        """Where a remark stands that was not seen before.

        One on a removed line is counted in the text as it was before the phase; all others are
        counted in the text that was saved.
        """
        first, base = remark.thread.first, remark.phase.merge_base
        if not sheet.lines:
            return Mark(first.line_number - 1, removed=first.line_type is LineType.REMOVED)
        if first.line_type is not LineType.REMOVED:
            mark = Mark(numbered(saved, first.line_number))
            if saved is sheet.lines:
                return mark
            return moved(mark, saved, rewritten(saved, sheet.lines))
        old = None if base is None else self._before(base, name)
        if old is None:
            return Mark(numbered(sheet.lines, first.line_number), removed=True)
        mark = Mark(numbered(old, first.line_number))
        return moved(mark, old, rewritten(old, sheet.lines))

    def _before(self, base: str, name: str) -> list[str] | None:
        """The lines of a file as a commit has it."""
        key = base, name
        if key not in self._bases:
            environment = self.look().workspace.variables
            commit = changes.commit_of(self.root, base, environment)
            told = None if commit is None else changes.text_at(self.root, commit, name, environment)
            self._bases[key] = None if told is None else split(told)
        return self._bases[key]

    def _on_disk(self, path: str) -> list[str]:
        """The lines of a file inside the worktree; none of what is no text file of decent size."""
        real = Path(os.path.realpath(path))
        if not real.is_relative_to(self.root):
            return []
        try:
            # Neither a pipe nor a device is waited for, should one take the file's place.
            descriptor = os.open(real, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
        except OSError:
            return []
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST:
                return []
            return split(file.read().decode("utf-8", "replace"))
