"""What waits for a person: `waiting`."""

from herdbook.domain.errors import HerdbookError
from herdbook.domain.journal import Position
from herdbook.domain.location.areas import Area
from herdbook.entrypoints.context import AppContext
from herdbook.services.agents.person_queue import QueueEntry, record_waiting, work_waiting


def waiting(app: AppContext, *, at: Position | None = None) -> list[QueueEntry]:
    """What waits for a person here and in the record, oldest first.

    The record has a journal of its own: it is read as it was at the time of a position.
    """
    found, as_of = app.read(Area.WORK, lambda uow: (work_waiting(uow), uow.as_of), at=at)
    note = app.past_note
    try:
        found += app.read(Area.RECORD, record_waiting, at=None if as_of is None else as_of.time)
    except HerdbookError as error:
        app.warn(f"it is not known who is halted: {error}")
    app.past_note = note
    return sorted(found, key=lambda each: each.since)
