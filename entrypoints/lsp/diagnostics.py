"""Remarks as an editor shows them: beside a line, with what was said and replied."""

from collections.abc import Sequence
from typing import Any

from herdbook.domain.plan.model import LineType, ReviewComment
from herdbook.entrypoints.lsp.comment_positions import Mark
from herdbook.entrypoints.lsp.positions import Encoding, content, units
from herdbook.services.agents.editor_comments import PhaseThread

SOURCE = "herdbook"
INFORMATION = 3
GONE = "the line it was made on was removed; this is the line that follows it"
WAS_GONE = "made on a line that the change removes; this is the line that follows it"


def diagnostic(
    remark: PhaseThread, mark: Mark, lines: Sequence[str], encoding: Encoding
) -> dict[str, Any]:
    """A thread at its line, the first remark and its replies one below the other."""
    first = remark.thread.first
    said = [first, *remark.thread.replies]
    message = "\n".join(f"{each.author}: {each.body}" for each in said)
    note = _note(first, mark)
    return {
        "range": line_range(lines, mark.line, encoding),
        "severity": INFORMATION,
        "source": SOURCE,
        "code": first.id,
        "message": f"{message}\n({note})" if note else message,
        "data": {"comment": first.id, "phase": remark.phase.id, "resolved": first.resolved},
    }


def _note(first: ReviewComment, mark: Mark) -> str:
    if not mark.removed:
        return ""
    return WAS_GONE if first.line_type is LineType.REMOVED else GONE


def line_range(lines: Sequence[str], line: int, encoding: Encoding) -> dict[str, Any]:
    """A line from its first letter to its end; of one that is not there, its beginning."""
    text = content(lines[line]) if line < len(lines) else ""
    indent = len(text) - len(text.lstrip())
    begin = indent if indent < len(text) else 0
    return {
        "start": {"line": line, "character": units(text[:begin], encoding)},
        "end": {"line": line, "character": units(text, encoding)},
    }
