"""One task with everything around it: its place, its holder, its dependencies and its history."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, TypedDict

from herdbook.domain.journal import JournalEntry, Op
from herdbook.domain.plan.model import Phase, Task
from herdbook.domain.plan.readiness import Opening, OpeningState
from herdbook.ports.engine.dictionary import AGENTS, OPENINGS, TASKS
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services.plan.board_model import state_of
from herdbook.services.plan.dependencies import task_dependencies

LAST = 10
"""How many changes of a task are told."""
_TOLD = ("status", "name", "priority", "phase_id", "assignee_id", "labels")
"""The fields whose changes are worth a word."""
_BOOKKEEPING = ("updated_at", "version", "fence", "claim_stamp", "lease_until")
"""The fields that follow a change by themselves."""


class RelatedRow(TypedDict):
    """A task or a phase by its id and name, its status, and its state as the board has it."""

    kind: str
    id: str
    name: str
    status: str
    state: str


class TaskEvent(TypedDict):
    """One change of a task: when, by whom, and what became of the fields that matter."""

    seq: int
    at: datetime
    who: str | None
    what: str


class TaskDetails(TypedDict):
    """What is known of a task besides its fields; `history` has its last changes, `state` its lane.

    `history_from` is the number at which the journal begins, if earlier changes of it were folded.
    """

    state: str
    phase: str | None
    initiative: str | None
    parent: str | None
    holder: str | None
    lease_until: datetime | None
    waits_for: list[RelatedRow]
    dependents: list[RelatedRow]
    children: list[RelatedRow]
    history: list[TaskEvent]
    changes: int
    history_from: int | None


def task_details(uow: UnitOfWork, task: Task) -> TaskDetails:
    """What is known of a task besides its fields."""
    phase = None if task.phase_id is None else uow.phases.get(task.phase_id)
    owner = task.initiative_id if phase is None else phase.initiative_id
    parent = None if task.parent_task_id is None else uow.tasks.get(task.parent_task_id)
    opening = uow.openings.find(task.id)
    holder = None
    if opening is not None and opening.state is OpeningState.HELD:
        agent = uow.agents.find_holder(task, opening)
        holder = None if agent is None else agent.name
    entries = uow.journal.of_row(TASKS, task.id)
    is_whole = not uow.journal.pruned_to() or bool(entries and entries[0].op is Op.ADD)
    return {
        "state": state_of(task, opening),
        "phase": None if phase is None else phase.name,
        "initiative": None if owner is None else uow.initiatives.get(owner).name,
        "parent": None if parent is None else parent.name,
        "holder": holder,
        "lease_until": None if opening is None else opening.lease_until,
        "waits_for": _related_rows(uow, task_dependencies(uow, task.id)),
        "dependents": _related_rows(uow, uow.tasks.dependents(task.id)),
        "children": _related_rows(uow, uow.tasks.children(task.id)),
        "history": [_event(uow, each) for each in entries[-LAST:]],
        "changes": len(entries),
        "history_from": None if is_whole else uow.journal.pruned_to() + 1,
    }


def _related_rows(uow: UnitOfWork, rows: Sequence[Task | Phase]) -> list[RelatedRow]:
    found = uow.get(OPENINGS, [each.id for each in rows])
    return [_related_row(*each) for each in zip(rows, found, strict=True)]


def _related_row(row: Task | Phase, opening: Opening | None) -> RelatedRow:
    kind, state = "phase", str(row.status)
    if isinstance(row, Task):
        kind, state = "task", str(state_of(row, opening))
    return {"kind": kind, "id": row.id, "name": row.name, "status": row.status, "state": state}


def _event(uow: UnitOfWork, entry: JournalEntry) -> TaskEvent:
    after: dict[str, Any] = {} if entry.op is not Op.SAVE else dict(entry.after or {})
    words = [f"{_field(name)} {_value(uow, name, after[name])}" for name in _TOLD if name in after]
    others = [_field(name) for name in after if name not in (*_TOLD, *_BOOKKEEPING)]
    verb = {Op.ADD: "added", Op.SAVE: "changed", Op.REMOVE: "removed"}[entry.op]
    what = ", ".join([*words, *others])
    who = entry.agent or entry.person
    return {"seq": entry.seq, "at": entry.time, "who": who, "what": what or verb}


def _field(name: str) -> str:
    return name.removesuffix("_id").replace("_", " ")


def _value(uow: UnitOfWork, name: str, value: object) -> str:
    """A value as people know it: the name of an agent for its id."""
    if name == "assignee_id" and value is not None:
        (agent,) = uow.get(AGENTS, [value])
        return str(value) if agent is None else agent.name
    text = "none" if value is None else str(value)
    return text.replace("_", " ") if name == "status" else text
