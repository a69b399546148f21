"""Flushes the spool into the record: events are taken, located, written and confirmed.

A flush that fails leaves the spool as it is, and its reason is noted.
"""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from herdbook.domain.errors import HerdbookError
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.ports.world.git_history import GitHistory
from herdbook.ports.world.halt_markers import HaltMarkers
from herdbook.ports.world.spool import FlushNotes, Spool
from herdbook.services.record import record_ingest
from herdbook.services.record.locate_events import locate_events
from herdbook.services.record.record_ingest import FlushReport

REASON = "this agent is halted: it has no skill points left. A person may reinstate it"
EMPTY = FlushReport(0, 0, 0, [], {}, {})


class Record(NamedTuple):
    """How a flush runs use cases on the record, and reads it."""

    run: Callable[..., Any]
    read: Callable[..., Any]


def flush(
    record: Record,
    spool: Spool,
    history: GitHistory,
    markers: HaltMarkers,
    notes: FlushNotes,
    *,
    enforce_halt: bool,
) -> tuple[FlushReport, set[str]]:
    """Write the events of the spool into the record, then remove them from the spool.

    Returns the report, and the folders of the events that were located. If it fails, the events
    stay in the spool. Killed at any instant, it leaves events in the spool or in the record, or in
    both; then the next flush finds that they are duplicates.
    """
    batch = spool.take()
    located = locate_events(history, batch.events)
    events = located.events
    try:
        report: FlushReport = record.run(record_ingest.flush, events) if events else EMPTY
    except HerdbookError as error:
        notes.note_failure(f"{len(events)} events wait: {error}")
        raise
    for event_id, reason in report.aside:
        batch.set_aside(event_id, reason)
    mark_halted(record, markers, report.sessions.items(), enforce_halt=enforce_halt)
    batch.confirm()
    notes.note_failure(None)
    notes.note_unlocated(located.counts(), located.problems, located.located_folders)
    notes.note_dropped(report.dropped)
    return report._replace(aside=batch.list_aside()), located.located_folders


def mark_halted(
    record: Record,
    markers: HaltMarkers,
    sessions: Iterable[tuple[str, str]] = (),
    *,
    enforce_halt: bool,
) -> None:
    """Set a marker for every halted agent and its sessions, if halts are enforced."""

    def question(uow: UnitOfWork) -> tuple[str, dict[str, str], list[str]]:
        if not enforce_halt:
            return uow.store_uuid, {}, []
        agents = [each.agent for each in record_ingest.standings_with(uow) if not each.active]
        return uow.store_uuid, record_ingest.halted_sessions(uow, list(sessions)), agents

    node, found, agents = record.read(question)
    markers.set_halts(
        node,
        {session: f"{agent}: {REASON}" for session, agent in found.items()},
        {agent: f"{agent}: {REASON}" for agent in agents},
    )
