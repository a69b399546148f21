"""What waits for a person: `waiting`."""

from datetime import datetime
from typing import Any, TypedDict

from herdbook.domain.errors import HerdbookError
from herdbook.domain.location.areas import Area
from herdbook.entrypoints.context import AppContext
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
    actions: list[ActionAnswer]


def waiting(app: AppContext) -> list[QueueAnswer]:
    """What waits for a person here and in the record, oldest first."""
    found = app.read(Area.WORK, work_waiting)
    try:
        found += app.read(Area.RECORD, record_waiting)
    except HerdbookError as error:
        app.warn(f"it is not known who is halted: {error}")
    return [_entry(each) for each in sorted(found, key=lambda each: each.since)]


def _entry(entry: QueueEntry) -> QueueAnswer:
    return {
        "kind": entry.kind,
        "subject": entry.subject,
        "since": entry.since,
        "title": entry.title,
        "text": entry.text,
        "agent": entry.agent,
        "task_id": entry.task_id,
        "actions": [
            {"label": each.label, "method": each.method, "params": each.params, "text": each.text}
            for each in entry.actions
        ],
    }
