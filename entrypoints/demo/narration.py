"""The journal as a story: one sentence for each entry that matters."""

from collections.abc import Mapping
from typing import Any

from herdbook.domain.journal import JournalEntry, Op
from herdbook.domain.record.model import Standing
from herdbook.entrypoints.demo.judging import Delivery
from herdbook.entrypoints.demo.plot import Member

Names = Mapping[str, str]
"""What rows are called, by their ids: tasks, agents, phases, worktrees."""


def sentence(entry: JournalEntry, names: Names) -> str | None:
    """What an entry tells; None for what nobody waits to hear."""
    who = entry.agent or entry.person or "somebody"
    what = names.get(entry.key, entry.key)
    after: dict[str, Any] = dict(entry.after or {})
    match entry.entity:
        case "tasks":
            return _task(entry, who, what, after)
        case "agents":
            return _agent(entry, what, after, names)
        case "conversations":
            return _conversation(entry, who, after, names)
        case "initiatives" if entry.op is Op.ADD:
            return f"the initiative {what!r} begins"
        case "phases" | "initiatives" if after.get("status") == "completed":
            return f"the {entry.entity.removesuffix('s')} {what!r} is completed"
    return None


def _task(entry: JournalEntry, who: str, what: str, after: dict[str, Any]) -> str | None:
    if entry.op is not Op.SAVE:
        return None
    match after.get("status"):
        case "in_progress":
            return f"{who} claims {what!r}"
        case "completed":
            return f"{who} completes {what!r}: {after.get('summary')}"
        case "pending":
            return f"{what!r} is free again, and its next try is number {after['retry_count'] + 1}"
    return None if "fence" not in after else f"{who} takes {what!r} over"


def _agent(entry: JournalEntry, what: str, after: dict[str, Any], names: Names) -> str | None:
    if entry.op is Op.ADD:
        place = names.get(entry.worktree or "", "no worktree")
        return f"{what} comes to work in {place!r}, as process {after['pid']}"
    match after.get("status"):
        case "crashed":
            return f"{what} is found crashed: its process is gone"
        case "stopped":
            result = after.get("result") or {}
            if "refused" in result:
                return f"{what} claims in vain ({result['refused']}: {result['why']}) and leaves"
            return f"{what} leaves, having done {len(result.get('done', ()))} tasks"
    return None


def _conversation(entry: JournalEntry, who: str, after: dict[str, Any], names: Names) -> str | None:
    if entry.op is Op.ADD:
        whom = names.get(after["to_agent_id"], "somebody")
        return f"{who} asks {whom}: {after['question']}"
    return f"{who} answers: {after['answer']}" if after.get("answer") else None


def verdict(delivery: Delivery, member: Member, standing: Standing) -> str:
    """What was thought of a task that was handed in."""
    own, yours = (grade.label for grade in member.grades)
    said = (
        f"{delivery.agent} calls {delivery.task!r} {own}, you call it {yours}: "
        f"score {standing.communication_score}"
    )
    if standing.active:
        return said
    bugs = "a bug" if standing.bugs == 1 else f"{standing.bugs} bugs"
    return f"{said}; {bugs} in it, and {delivery.agent} is halted"
