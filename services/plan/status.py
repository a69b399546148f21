"""The status of a repository: which agent works on what, since when, and what it waits for."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from herdbook.domain.agents.model import Agent, AgentStatus, Worktree
from herdbook.domain.conversation import (
    ConversationStatus,
    MessageStatus,
    Party,
    asks_person,
)
from herdbook.domain.journal import UNDO_NOTE, JournalEntry
from herdbook.domain.plan.model import Task
from herdbook.domain.plan.readiness import Opening, OpeningState, holder_of
from herdbook.ports.engine.dictionary import (
    AGENTS,
    CONVERSATIONS,
    MESSAGES,
    OPENINGS,
    WAITING,
    WORKTREES,
)
from herdbook.ports.engine.query import any_of, find
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork

YOU = "you"
"""What an agent that asked a person waits for."""
RECENT = 100
"""How many of the last journal entries are searched for an agent's last one."""
_SHOWN = (
    AgentStatus.RUNNING,
    AgentStatus.WAITING_FOR_INPUT,
    AgentStatus.IDLE,
    AgentStatus.CRASHED,
)


class StatusRow(NamedTuple):
    """An agent and the task it holds, or a held task whose agent is not known."""

    worktree_id: str | None
    agent: Agent | None
    task: Task | None
    since: datetime
    lease_until: datetime | None
    waiting_for: tuple[str, ...]
    last_entry: JournalEntry | None


class Status(NamedTuple):
    """The status of a space at one moment."""

    now: datetime
    worktrees: tuple[Worktree, ...]
    rows: tuple[StatusRow, ...]
    ready: int
    held: int
    waiting: int
    last_entry: JournalEntry | None
    noted: tuple[JournalEntry, ...] = ()


def status(uow: UnitOfWork) -> Status:
    """The status of the space of a unit of work."""
    where = {"status": any_of(_SHOWN)}
    agents = [each for each in uow.agents.select(find(uow.agents.kind, where)) if _is_shown(each)]
    held = uow.openings.select(find(OPENINGS, {"state": OpeningState.HELD}))
    openings = {opening.task_id: opening for opening in held}
    tasks = uow.tasks.get_many(openings)
    recent = _own_changes(uow.journal.recent(RECENT))
    rows = _rows(agents, tasks, openings, _waiting_for(uow, agents), recent)
    return Status(
        now=uow.now,
        worktrees=tuple(uow.worktrees.page()),
        rows=tuple(sorted(rows, key=_sort_key)),
        ready=uow.count(find(OPENINGS, {"state": OpeningState.READY})),
        held=len(held),
        waiting=uow.count(find(WAITING)),
        last_entry=recent[-1] if recent else None,
        noted=_latest_notes(recent),
    )


def entry_names(uow: UnitOfWork, status: Status) -> dict[int, str]:
    """What the rows of the shown entries are called, by the numbers of the entries."""
    shown = [status.last_entry, *(row.last_entry for row in status.rows), *status.noted]
    entries = {each.seq: each for each in shown if each is not None}
    names = {}
    for kind in uow.dictionary:
        own = [each for each in entries.values() if each.entity == kind.name]
        field = "path" if kind is WORKTREES else "name"
        if not own or field not in kind.columns:
            continue
        for entry, row in zip(own, uow.get(kind, [each.key for each in own]), strict=True):
            name = (entry.before or {}).get(field) if row is None else vars(row)[field]
            names[entry.seq] = f"{kind.title} {name!r}" if name else kind.title
    return names


def status_line(uow: UnitOfWork) -> str:
    """How many tasks are held and ready, and what waits for the person, in one short line."""
    inbox = {"status": MessageStatus.PENDING, "recipient_type": Party.USER}
    counts = (
        (uow.count(find(OPENINGS, {"state": OpeningState.HELD})), "held"),
        (uow.count(find(OPENINGS, {"state": OpeningState.READY})), "ready"),
        (uow.count(find(AGENTS, {"status": AgentStatus.WAITING_FOR_INPUT})), "wait for you"),
        (uow.count(find(MESSAGES, inbox)), "unread"),
    )
    return ", ".join(f"{count} {what}" for count, what in counts if count) or "nothing to do"


def _own_changes(entries: Sequence[JournalEntry]) -> list[JournalEntry]:
    """The entries without rows that only came along with the change of a transaction.

    Those are the worktree that somebody was seen in, and agents that followed.
    """
    elsewhere = {each.tx for each in entries if each.entity != WORKTREES.name}
    found: list[JournalEntry] = []
    for entry in entries:
        is_along = entry.entity == AGENTS.name and bool(found) and found[-1].tx == entry.tx
        if not is_along and not (entry.entity == WORKTREES.name and entry.tx in elsewhere):
            found.append(entry)
    return found


def _latest_notes(recent: Sequence[JournalEntry]) -> tuple[JournalEntry, ...]:
    """The last entry for each note of each agent or person."""
    noted = [each for each in recent if each.note and not each.note.startswith(UNDO_NOTE)]
    last = {(each.agent, each.person, each.note): each for each in noted}
    return tuple(last.values())


def _is_shown(agent: Agent) -> bool:
    """Whether the agent is shown: a crashed one until a person has dismissed it."""
    return agent.user_dismissed_at is None or agent.status is not AgentStatus.CRASHED


def _rows(
    agents: Sequence[Agent],
    tasks: Sequence[Task],
    openings: dict[str, Opening],
    awaited: dict[str, tuple[str, ...]],
    recent: Sequence[JournalEntry],
) -> list[StatusRow]:
    last = {entry.agent: entry for entry in recent if entry.agent}
    by_holder: dict[str | None, list[Task]] = {}
    for task in tasks:
        by_holder.setdefault(holder_of(task, openings[task.id]), []).append(task)
    rows = []
    for agent in agents:
        lasts = awaited.get(agent.id, ()), last.get(agent.name)
        held = by_holder.pop(agent.id, [])
        rows += [_task_row(task, agent, openings[task.id], *lasts) for task in held]
        if not held:
            rows.append(StatusRow(agent.worktree_id, agent, None, agent.updated_at, None, *lasts))
    orphaned = [task for left in by_holder.values() for task in left]
    return rows + [_task_row(task, None, openings[task.id]) for task in orphaned]


def _task_row(
    task: Task,
    agent: Agent | None,
    opening: Opening,
    waiting_for: tuple[str, ...] = (),
    last_entry: JournalEntry | None = None,
) -> StatusRow:
    worktree_id = agent.worktree_id if agent is not None else task.worktree_id
    return StatusRow(
        worktree_id, agent, task, task.updated_at, opening.lease_until, waiting_for, last_entry
    )


def _waiting_for(uow: UnitOfWork, agents: Sequence[Agent]) -> dict[str, tuple[str, ...]]:
    """What each agent waits for: agents it asked, or a person."""
    names = {agent.id: agent.name for agent in agents}
    pairs = [(agent.id, YOU) for agent in agents if agent.status is AgentStatus.WAITING_FOR_INPUT]
    if names:
        where = {"to_agent_id": any_of(names), "status": ConversationStatus.PENDING}
        asked = uow.conversations.select(find(CONVERSATIONS, where))
        pairs += [(each.from_agent_id, names[each.to_agent_id]) for each in asked]
    for message in uow.messages.requiring_response():
        if message.sender_type is Party.AGENT and message.sender_id is not None:
            other = names.get(message.recipient_id or "", "?")
            pairs.append((message.sender_id, YOU if asks_person(vars(message)) else other))
    return _group(pairs)


def _group(pairs: Iterable[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    grouped: dict[str, dict[str, None]] = {}
    for key, value in pairs:
        grouped.setdefault(key, {})[value] = None
    return {key: tuple(values) for key, values in grouped.items()}


def _sort_key(row: StatusRow) -> tuple[str, int, str]:
    """Sort by worktree, then by status, running agents first, then by name."""
    order = list(_SHOWN)
    agent = row.agent
    return (
        row.worktree_id or "",
        order.index(agent.status) if agent else len(order),
        agent.name if agent else row.task.name if row.task else "",
    )
