"""Review comments as diagnostics: a thread at its line."""

from collections.abc import Sequence
from typing import Any

from herdbook.domain.plan.model import LineType, ReviewComment
from herdbook.entrypoints.lsp.comment_positions import Mark
from herdbook.entrypoints.lsp.positions import Encoding, content, units
from herdbook.services.agents.editor_comments import PhaseThread

SOURCE = "herdbook"
INFORMATION = 3
LINE_REMOVED = "the line it was made on was removed; this is the line that follows it"
ON_REMOVED_LINE = "made on a line that the change removes; this is the line that follows it"


def diagnostic(
    comment: PhaseThread, mark: Mark, lines: Sequence[str], encoding: Encoding
) -> dict[str, Any]:
    """The diagnostic of a thread: its first comment and its replies, one per line."""
    first = comment.thread.first
    comments = [first, *comment.thread.replies]
    message = "\n".join(f"{each.author}: {each.body}" for each in comments)
    note = _note(first, mark)
    return {
        "range": line_range(lines, mark.line, encoding),
        "severity": INFORMATION,
        "source": SOURCE,
        "code": first.id,
        "message": f"{message}\n({note})" if note else message,
        "data": {"comment": first.id, "phase": comment.phase.id, "resolved": first.resolved},
    }


def _note(first: ReviewComment, mark: Mark) -> str:
    if not mark.removed:
        return ""
    return ON_REMOVED_LINE if first.line_type is LineType.REMOVED else LINE_REMOVED


def line_range(lines: Sequence[str], line: int, encoding: Encoding) -> dict[str, Any]:
    """The range of a line from its first letter to its end; an empty range for a missing line."""
    text = content(lines[line]) if line < len(lines) else ""
    indent = len(text) - len(text.lstrip())
    begin = indent if indent < len(text) else 0
    return {
        "start": {"line": line, "character": units(text[:begin], encoding)},
        "end": {"line": line, "character": units(text, encoding)},
    }
