"""One worktree that is open in an editor: the comments on its files, each at its line."""

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
from herdbook.entrypoints.lsp.buffers import Buffers, Snapshot, carry_marks
from herdbook.entrypoints.lsp.comment_positions import Mark, move_mark, replace_text
from herdbook.entrypoints.lsp.positions import line_index, split_lines
from herdbook.services.agents import editor_comments
from herdbook.services.agents.editor_comments import PhaseThread

LARGEST = 4 * 2**20
"""The largest file, in bytes, that is read to find a line in it."""
ATTEMPTS = 3
"""How often marks are computed again because the text changed meanwhile."""

ContextFactory = Callable[[], AppContext]


class FileComments(NamedTuple):
    """The comments of a file, each with its mark, and the lines that the marks refer to."""

    uri: str | None
    version: int | None
    lines: Sequence[str]
    comments: tuple[tuple[PhaseThread, Mark], ...]


class EditorWorktree:
    """A worktree, or a folder outside any repository."""

    def __init__(self, get_context: ContextFactory, buffers: Buffers) -> None:
        app = get_context()
        top_level = app.workspace.facts.top_level if app.workspace.facts is not None else None
        self.get_context = get_context
        self.root = os.path.realpath(top_level or app.workspace.folder)
        self._buffers = buffers
        self._loading = threading.Lock()
        self._known: tuple[str | None, Mapping[str, list[PhaseThread]]] | None = None
        self._bases: dict[tuple[str, str], list[str] | None] = {}

    def name_of(self, path: str) -> str | None:
        """A path relative to the worktree's root; None if it is outside this worktree."""
        real = os.path.realpath(path)
        inside = real.startswith(f"{self.root.rstrip('/')}/")
        return os.path.relpath(real, self.root) if inside else None

    def path_of(self, name: str) -> str | None:
        """The path of a file of the worktree; None for a name that leads out of it."""
        parts = PurePosixPath(name).parts
        if not parts or name.startswith("/") or ".." in parts or "\0" in name:
            return None
        try:
            path = os.path.join(self.root, *parts)  # noqa: PTH118 - names may hold any bytes
            return path if self.name_of(path) is not None else None
        except ValueError:
            return None

    def forget(self) -> None:
        """Ask the store again the next time."""
        self._known = None

    def comments(self) -> Mapping[str, list[PhaseThread]]:
        """All comments on the current initiative, by file name."""
        app = self.get_context()
        branch = None if app.workspace.facts is None else app.workspace.facts.branch
        with self._loading:
            known = self._known
            if known is not None and known[0] == branch:
                return known[1]
            # `forget` during the read replaces the marker, so that the next call reads again.
            marker: tuple[str | None, Mapping[str, list[PhaseThread]]] = (branch, {})
            self._known = marker
            try:
                found = app.read(
                    Area.WORK,
                    editor_comments.initiative_comments,
                    branch,
                    app.workspace.worktree_id,
                )
            except BaseException:
                self._known = None
                raise
            grouped: dict[str, list[PhaseThread]] = {}
            for comment in found.threads:
                name = str(PurePosixPath(comment.thread.first.file_path))
                grouped.setdefault(name, []).append(comment)
            if self._known is marker:
                self._known = (branch, grouped)
            return grouped

    def commented_files(self) -> Iterator[str]:
        """The paths of all files that have comments."""
        for name in self.comments():
            path = self.path_of(name)
            if path is not None:
                yield path

    def find_comment(self, comment_id: str) -> PhaseThread | None:
        """The thread that begins with a comment; None if it is not of the current initiative."""
        every = (each for comments in self.comments().values() for each in comments)
        return next((each for each in every if each.thread.first.id == comment_id), None)

    def locate_comments(self, path: str) -> FileComments:
        """The comments of a file, each at its line: in the open text, else in the file on disk."""
        name = self.name_of(path)
        comments = [] if name is None else self.comments().get(name, [])
        for _ in range(ATTEMPTS):
            buffer = self._buffers.find(path)
            if buffer is None:
                break
            snapshot = buffer.snapshot
            marks = self._marks(name or "", comments, snapshot, buffer.saved_lines)
            if marks == snapshot.marks or self._buffers.set_marks(path, snapshot, marks):
                pairs = tuple((each, marks[each.thread.first.id]) for each in comments)
                return FileComments(buffer.uri, buffer.version, snapshot.lines, pairs)
        lines = self._lines_on_disk(path) if comments else []
        closed = self._buffers.find_closed(path)
        known = carry_marks(closed, lines) if closed is not None and lines else {}
        marks = self._marks(name or "", comments, Snapshot(lines, known), lines)
        return FileComments(
            None, None, lines, tuple((each, marks[each.thread.first.id]) for each in comments)
        )

    def _marks(
        self, name: str, comments: Sequence[PhaseThread], snapshot: Snapshot, saved: list[str]
    ) -> dict[str, Mark]:
        marks = {}
        for comment in comments:
            key = comment.thread.first.id
            known = snapshot.marks.get(key)
            marks[key] = (
                self._initial_mark(name, comment, snapshot, saved) if known is None else known
            )
        return marks

    def _initial_mark(
        self, name: str, comment: PhaseThread, snapshot: Snapshot, saved: list[str]
    ) -> Mark:
        """The mark of a comment that was not seen before.

        The line number of a comment on a removed line counts in the text as it was before the
        phase; that of any other comment counts in the commit that it names, else in the saved text.
        """
        first, base = comment.thread.first, comment.phase.merge_base
        if not snapshot.lines:
            return Mark(first.line_number - 1, removed=first.line_type is LineType.REMOVED)
        if first.line_type is not LineType.REMOVED:
            then = first.commit_hash and self._lines_at_commit(first.commit_hash, name)
            if then:
                return move_mark(
                    Mark(line_index(then, first.line_number)),
                    then,
                    replace_text(then, snapshot.lines),
                )
            mark = Mark(line_index(saved, first.line_number))
            if saved is snapshot.lines:
                return mark
            return move_mark(mark, saved, replace_text(saved, snapshot.lines))
        old = None if base is None else self._lines_at_commit(base, name)
        if old is None:
            return Mark(line_index(snapshot.lines, first.line_number), removed=True)
        mark = Mark(line_index(old, first.line_number))
        return move_mark(mark, old, replace_text(old, snapshot.lines))

    def _lines_at_commit(self, base: str, name: str) -> list[str] | None:
        """The lines of a file in a commit; None if the commit does not have it."""
        key = base, name
        if key not in self._bases:
            environment = self.get_context().workspace.variables
            commit = changes.commit_of(self.root, base, environment)
            text = None if commit is None else changes.text_at(self.root, commit, name, environment)
            self._bases[key] = None if text is None else split_lines(text)
        return self._bases[key]

    def _lines_on_disk(self, path: str) -> list[str]:
        """The lines of a file inside the worktree; none if it is too large or not regular."""
        real = Path(os.path.realpath(path))
        if not real.is_relative_to(self.root):
            return []
        try:
            # Without blocking, should a pipe or a device have replaced the file.
            descriptor = os.open(real, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
        except OSError:
            return []
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST:
                return []
            return split_lines(file.read().decode("utf-8", "replace"))
