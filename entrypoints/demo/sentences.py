"""Turns journal entries into the lines that the demo prints."""

from collections.abc import Mapping
from typing import Any, Final

from herdbook.domain.journal import JournalEntry, Op

SENTENCES: Final = {
    ("agents", "add"): "{name} comes to work in {place!r}, as process {pid}",
    ("agents", "crashed"): "{name} is found crashed: its process is gone",
    ("agents", "refused"): "{name} claims in vain ({refused}: {why}) and leaves",
    ("agents", "stopped"): "{name} leaves, having done {count} tasks",
    ("tasks", "in_progress"): "{who} claims {name!r}",
    ("tasks", "completed"): "{who} completes {name!r}: {summary}",
    ("tasks", "pending"): "{name!r} is free again, and its next try is number {next_try}",
    ("tasks", "fence"): "{who} takes {name!r} over",
    ("conversations", "add"): "{who} asks {whom}: {question}",
    ("conversations", "answered"): "{who} answers: {answer}",
    ("initiatives", "add"): "the initiative {name!r} begins",
    ("initiatives", "completed"): "the initiative {name!r} is completed",
    ("phases", "completed"): "the phase {name!r} is completed",
}
"""A sentence for each event, by the kind of row and what happened to it."""


def sentence_of(entry: JournalEntry, names: Mapping[str, str]) -> str | None:
    """The sentence for a journal entry, given the names of rows by their ids; None if none."""
    after: dict[str, Any] = dict(entry.after or {})
    result = after.get("result") or {}
    event = after.get("status") or ("fence" if "fence" in after else "")
    if entry.op is not Op.SAVE:
        event = entry.op.value
    elif "refused" in result:
        event = "refused"
    known = {
        "who": entry.agent or entry.person or "somebody",
        "whom": names.get(after.get("to_agent_id", ""), "somebody"),
        "place": names.get(entry.worktree or "", "no worktree"),
        "count": len(result.get("done", ())),
        "next_try": after.get("retry_count", 0) + 1,
        "name": names.get(entry.key, entry.key),
    }
    template = SENTENCES.get((entry.entity, event))
    return template and template.format(**{**after, **result, **known})
