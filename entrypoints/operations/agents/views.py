"""Text for people from waiting agents and logs."""

import json
from typing import Any

from herdbook.entrypoints.cli.terminal import table
from herdbook.entrypoints.cli.text import plain


def waiting(answer: list[dict[str, Any]]) -> str:
    """The waiting agents with their tasks and questions."""
    rows = [
        (
            plain(each["name"]),
            plain(each["initiative_name"] or "-"),
            plain(each["phase_name"] or "-"),
            plain(each["task_name"] or "-"),
            plain(json.dumps(each["pending_questions"], ensure_ascii=False)),
        )
        for each in answer
    ]
    return table(("AGENT", "INITIATIVE", "PHASE", "TASK", "ASKS"), rows, "nobody waits for you")


def log_chunk(answer: dict[str, Any]) -> str:
    """The output of an agent, without control characters that a terminal would obey."""
    lines: list[str] = answer["content"].splitlines()
    return "\n".join(plain(line) for line in lines)


def log_summaries(answer: list[dict[str, Any]]) -> str:
    """Whose logs there are, a line each."""
    rows = [
        (
            plain(each["agent_name"]),
            plain(each["agent_id"]),
            str(each["sessions"]),
            "removed" if each["removed"] else "",
        )
        for each in answer
    ]
    return table(("AGENT", "ID", "SESSIONS", ""), rows, "there are none")
