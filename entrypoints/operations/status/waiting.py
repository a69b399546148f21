"""What waits for a person: `waiting`."""

from datetime import datetime
from typing import Any, TypedDict

from herdbook.domain.errors import HerdbookError
from herdbook.domain.journal import Position
from herdbook.domain.location.areas import Area
from herdbook.domain.rewind import AsOf
from herdbook.entrypoints.context import AppContext
from herdbook.ports.engine.dictionary import TASKS
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services.agents.person_queue import QueueEntry, record_waiting, work_waiting


class ActionAnswer(TypedDict):
    """An operation that answers an entry; `text` is the parameter that a person writes."""

    label: str
    method: str
    params: dict[str, Any]
    text: str | None


class QueueAnswer(TypedDict):
    """Something that waits for a person, and what can be done about it."""

    kind: str
    subject: str
    since: datetime
    title: str
    text: str
    agent: str | None
    task_id: str | None
    task: str | None
    actions: list[ActionAnswer]


def waiting(app: AppContext, *, at: Position | None = None) -> list[QueueAnswer]:
    """What waits for a person here and in the record, oldest first.

    The record has a journal of its own: it is read as it was at the time of a position.
    """
    found, names, as_of = app.read(Area.WORK, _read_work, at=at)
    note = app.past_note
    try:
        found += app.read(Area.RECORD, record_waiting, at=None if as_of is None else as_of.time)
    except HerdbookError as error:
        app.warn(f"it is not known who is halted: {error}")
    app.past_note = note
    return [_entry(each, names) for each in sorted(found, key=lambda each: each.since)]


def _read_work(uow: UnitOfWork) -> tuple[list[QueueEntry], dict[str, str], AsOf | None]:
    """What waits in the plan, and the names of the tasks that it is about."""
    found = work_waiting(uow)
    tasks = uow.get(TASKS, [each.task_id for each in found if each.task_id is not None])
    return found, {task.id: task.name for task in tasks if task is not None}, uow.as_of


def _entry(entry: QueueEntry, names: dict[str, str]) -> QueueAnswer:
    return {
        "kind": entry.kind,
        "subject": entry.subject,
        "since": entry.since,
        "title": entry.title,
        "text": entry.text,
        "agent": entry.agent,
        "task_id": entry.task_id,
        "task": None if entry.task_id is None else names.get(entry.task_id),
        "actions": [
            {"label": each.label, "method": each.method, "params": each.params, "text": each.text}
            for each in entry.actions
        ],
    }
