"""From the spool into the record: what waits there, found in its place, flushed and confirmed.

A flush that fails leaves the spool as it is and writes down why, for `herdbook doctor`.
"""

import json
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from herdbook.adapters.user_state import dirs, halt_markers, spool
from herdbook.domain.errors import HerdbookError, InvalidValue
from herdbook.domain.location.areas import Area
from herdbook.domain.record.events import Event
from herdbook.entrypoints.context import AppContext
from herdbook.entrypoints.hooks import locate_events
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services.record import record_ingest
from herdbook.services.record.record_ingest import FlushReport

REASON = "this agent is halted: it has no skill points left. A person may reinstate it"


def buffered(here: AppContext) -> list[Event]:
    """What waits to be flushed; it stays where it is."""
    return locate_events.locate(here.workspace.variables, spool.buffered().events).events


def flush(here: AppContext) -> tuple[FlushReport, set[str]]:
    """Write what waits into the record and let it go; where that fails, it goes on waiting.

    Gives what came of it, and the folders of the events whose places are known. Raises InvalidValue
    for a record in memory, which would be gone with the events.
    """
    if here.workspace.place(Area.RECORD).scheme == "memory":
        raise InvalidValue("record", "is in memory, where nothing would be kept; the events wait")
    taken = spool.taken()
    located = locate_events.locate(here.workspace.variables, taken.events)
    events = located.events
    try:
        report = here.run(Area.RECORD, record_ingest.flush, events) if events else EMPTY
    except HerdbookError as error:
        _note_failure(f"{len(events)} events wait: {error}")
        raise
    lines = {each.id: each for each in taken}
    for event_id, reason in report.aside:
        line = json.dumps(lines[event_id]._asdict(), ensure_ascii=False)
        taken.aside.append(spool.Aside(event_id, line, reason))
    mark_halted(here, report.sessions.items())
    taken.confirm()
    _note_failure(None)
    locate_events.note(located)
    aside = [(each.place, each.reason) for each in taken.aside]
    return report._replace(aside=aside), located.understood


EMPTY = FlushReport(0, 0, 0, [], {})


def is_due(here: AppContext) -> bool:
    """Whether the spool is larger or older than the settings allow."""
    waiting = spool.waiting()
    if waiting.since is None:
        return False
    age = time.time() - waiting.since
    return bool(
        age >= here.workspace.setting("flush_after")
        or waiting.size >= here.workspace.setting("flush_size")
    )


def flush_if_due(here: AppContext) -> None:
    """Flush what has waited for too long; trouble with it is a warning and stops nobody."""
    if is_due(here):
        flush_gently(here)


def flush_if_any(here: AppContext) -> None:
    """Flush whatever waits, for who is about to learn from the whole record."""
    if spool.waiting().since is not None:
        flush_gently(here)


def flush_gently(here: AppContext) -> None:
    """Flush; trouble with it is a warning and stops nobody."""
    try:
        flush(here)
    except HerdbookError as error:
        here.warn(f"{error}. What the hooks left is safe and waits in the spool")


def mark_halted(here: AppContext, sessions: Iterable[tuple[str, str]] = ()) -> None:
    """Keep a marker for every halted agent and its sessions, if halts are to be enforced."""
    enforced = here.workspace.setting("enforce_halt")

    def question(uow: UnitOfWork) -> tuple[str, dict[str, str], list[str]]:
        if not enforced:
            return uow.node, {}, []
        agents = [each.agent for each in record_ingest.standing_with(uow) if not each.active]
        return uow.node, record_ingest.halted_sessions(uow, list(sessions)), agents

    record, found, agents = here.read(Area.RECORD, question)
    halt_markers.halt_only(
        record,
        {session: f"{agent}: {REASON}" for session, agent in found.items()},
        {agent: f"{agent}: {REASON}" for agent in agents},
    )


def last_failure() -> str | None:
    """Why the last flush did not work; None if it did."""
    try:
        return _failure_file().read_text(encoding="utf-8")
    except FileNotFoundError:
        return None


def as_answer(report: FlushReport) -> dict[str, Any]:
    """What a flush did, as it goes into JSON."""
    return {
        "applied": report.applied,
        "doubled": report.doubled,
        "uncounted": report.uncounted,
        "aside": [{"event": place, "reason": reason} for place, reason in report.aside],
    }


def _failure_file() -> Path:
    return dirs.state_folder() / "flush-failed"


def _note_failure(reason: str | None) -> None:
    file = _failure_file()
    if reason is None:
        file.unlink(missing_ok=True)
        return
    try:
        dirs.make_private(file.parent)
        dirs.write_private(file, reason)
    except OSError:  # where the disk is full it cannot be noted either, and must not hide why
        return
