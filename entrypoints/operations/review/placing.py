"""Where a comment is now: its lines have moved with the commits that were made since."""

import re
from typing import Final, NamedTuple

from herdbook.adapters.git.diff import CommitComparison
from herdbook.domain.plan.diff import ChangedFile
from herdbook.domain.plan.model import LineType, ReviewComment
from herdbook.entrypoints.lsp.comment_positions import Mark, move_mark, replace_text
from herdbook.entrypoints.operations.review.answers import printable

HERE, MOVED, OUTDATED = "here", "moved", "outdated"
OLD, NEW = "old", "new"
_HASH: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


def is_hash(text: str) -> bool:
    """Whether a text is the whole hash of a commit."""
    return _HASH.fullmatch(text) is not None


class LinePlace(NamedTuple):
    """The side and the lines of a comment in the diff, and whether they are still there."""

    side: str
    line: int
    last_line: int
    state: str


class CommentPlacer:
    """Finds the comments of one file in the difference between two commits."""

    def __init__(self, git: CommitComparison, file: ChangedFile, base: str, head: str) -> None:
        self._git = git
        self._lines = {
            OLD: git.file_lines(base, file.old_path) or [],
            NEW: git.file_lines(head, file.path) or [],
        }
        self._head = head
        self._earlier: dict[tuple[str, str], list[str] | None] = {}

    def place(self, comment: ReviewComment) -> LinePlace:
        """Where the lines of a comment are.

        If the commit that it was made on is known, the lines of that commit are matched with those
        of now. Else the nearest lines with the same text count; else the numbers.
        """
        side = OLD if comment.line_type is LineType.REMOVED else NEW
        lines, first = self._lines[side], comment.line_number
        span = max(0, (comment.last_line or first) - first)
        if side == NEW and comment.commit_hash == self._head:
            return LinePlace(side, first, first + span, HERE)
        earlier = self._lines_then(comment) if side == NEW else None
        if earlier is not None and first <= len(earlier) and lines:
            return self._match(comment, earlier, lines, span)
        found = _find_text(comment, lines)
        if found is None:
            last = max(1, len(lines))
            return LinePlace(side, min(first, last), min(first + span, last), OUTDATED)
        return LinePlace(side, found, found + span, HERE if found == first else MOVED)

    def _lines_then(self, comment: ReviewComment) -> list[str] | None:
        """The lines of the file in the commit that a comment was made on."""
        commit = comment.commit_hash
        if commit is None or not is_hash(commit):
            return None
        key = commit, comment.file_path
        if key not in self._earlier:
            self._earlier[key] = self._git.file_lines(*key)
        return self._earlier[key]

    def _match(
        self, comment: ReviewComment, earlier: list[str], lines: list[str], span: int
    ) -> LinePlace:
        edit = replace_text(earlier, lines)
        mark = move_mark(Mark(comment.line_number - 1), earlier, edit)
        at = min(comment.line_number - 1 + span, len(earlier) - 1)
        end = move_mark(Mark(at), earlier, edit)
        first, last = mark.line + 1, max(mark.line, end.line - end.removed) + 1
        moved = HERE if first == comment.line_number else MOVED
        changed = earlier[comment.line_number - 1] != lines[min(mark.line, len(lines) - 1)]
        return LinePlace(NEW, first, last, OUTDATED if mark.removed or changed else moved)


def _find_text(comment: ReviewComment, lines: list[str]) -> int | None:
    """The number of the line nearest to a comment's that has its text; its own without a text."""
    number = comment.line_number
    if comment.line_text is None:
        return number if number <= len(lines) else None
    wanted = comment.line_text.partition("\n")[0]
    same = [n for n, each in enumerate(lines, 1) if printable(each) == wanted]
    return min(same, key=lambda n: abs(n - number), default=None)
