"""Flush the spool of this user into the record of a context, and when that is due."""

import json
import time
from collections.abc import Iterable
from functools import partial
from typing import NotRequired, TypedDict

from herdbook.adapters.git.event_folders import EventFolders
from herdbook.adapters.hosts import parse_event
from herdbook.adapters.stores.registry import is_in_memory
from herdbook.adapters.system.os_errors import translate_os_errors
from herdbook.adapters.user_state import activity, flush_notes, halt_markers, spool
from herdbook.adapters.user_state.dirs import state_folder
from herdbook.domain.errors import HerdbookError, InvalidValue
from herdbook.domain.location.areas import Area
from herdbook.domain.record.events import HookEvent
from herdbook.entrypoints.context import AppContext
from herdbook.entrypoints.operations.answer_fields import answer_from
from herdbook.services.record import spool_flush
from herdbook.services.record.locate_events import locate_events
from herdbook.services.record.record_ingest import FlushReport
from herdbook.services.record.spool_flush import EMPTY, Record

__all__ = ["EMPTY"]


class _ParsedBatch:
    """The port `EventBatch` over what one reading of the spool found."""

    def __init__(self, taken: spool.SpoolBatch) -> None:
        self._taken = taken
        self._lines = {each.id: each for each in taken}

    @property
    def events(self) -> list[HookEvent]:
        return [parse_event(*each) for each in self._taken.events]

    def set_aside(self, event_id: str, reason: str) -> None:
        line = json.dumps(self._lines[event_id]._asdict(), ensure_ascii=False)
        self._taken.aside.append(spool.RejectedLine(event_id, line, reason))

    def list_aside(self) -> list[tuple[str, str]]:
        return [(each.place, each.reason) for each in self._taken.aside]

    def confirm(self) -> None:
        # Before the events leave the spool, which until then tell when their agents acted.
        activity.note_seen(self.events)
        self._taken.confirm()


class _UserSpool:
    """The port `Spool` over the spool in the state folder."""

    def __init__(self) -> None:
        self.batch: _ParsedBatch | None = None

    def take(self) -> _ParsedBatch:
        self.batch = _ParsedBatch(spool.take_batch())
        return self.batch

    def ended_sessions(self) -> list[str]:
        """The sessions whose last event so far says that they are gone."""
        events = [] if self.batch is None else self.batch.events
        sessions = {each.session_id: each for each in sorted(events, key=lambda each: each.at)}
        return [
            session
            for session, last in sessions.items()
            if session and last.name.rpartition(":")[2] in activity.ENDS
        ]


def read_waiting(app: AppContext) -> list[HookEvent]:
    """What waits to be flushed; it stays where it is."""
    batch = _ParsedBatch(spool.read_buffered())
    return locate_events(EventFolders(app.workspace.variables), batch.events).events


def flush(app: AppContext) -> tuple[FlushReport, set[str]]:
    """Write what waits into the record and let it go; where that fails, it goes on waiting.

    Gives what came of it, and the folders of the events whose places are known. Raises InvalidValue
    for a record in memory, which would be gone with the events, and StoreFull or StoreUnavailable
    if the spool, the halt markers or the notes cannot be written.
    """
    if is_in_memory(app.workspace.locate(Area.RECORD).url):
        raise InvalidValue("record", "is in memory, where nothing would be kept; the events wait")
    with translate_os_errors(str(state_folder())):
        spool.set_flush_size(app.workspace.setting("flush_size"))
        taken = _UserSpool()
        flushed = spool_flush.flush(
            _record(app),
            taken,
            EventFolders(app.workspace.variables),
            halt_markers,
            flush_notes,
            enforce_halt=app.workspace.setting("enforce_halt"),
        )
        from herdbook.entrypoints import liveness  # noqa: PLC0415 - it needs the context

        liveness.follow_sessions(app, taken.ended_sessions())
        return flushed


def _record(app: AppContext) -> Record:
    return Record(partial(app.run_unattended, Area.RECORD), partial(app.read, Area.RECORD))


def is_due(app: AppContext) -> bool:
    """Whether the spool is larger or older than the settings allow."""
    setting = app.workspace.setting
    with translate_os_errors(str(state_folder())):
        spool.set_flush_size(setting("flush_size"))
        waiting = spool.backlog()
    if waiting.since is None:
        return False
    age = time.time() - waiting.since
    return bool(age >= setting("flush_after") or waiting.size >= setting("flush_size"))


def flush_if_due(app: AppContext) -> None:
    """Flush what has waited for too long; trouble with it is a warning and stops nobody."""
    if is_due(app):
        flush_gently(app)


def flush_if_any(app: AppContext) -> None:
    """Flush whatever waits, for who is about to learn from the whole record."""
    if spool.backlog().since is not None:
        flush_gently(app)


def flush_gently(app: AppContext) -> None:
    """Flush; trouble with it is a warning and stops nobody."""
    try:
        flush(app)
    except HerdbookError as error:
        app.warn(f"{error}. What the hooks left is safe and waits in the spool")


def mark_halted(app: AppContext, sessions: Iterable[tuple[str, str]] = ()) -> None:
    """Keep a marker for every halted agent and its sessions, if halts are to be enforced.

    Raises StoreFull or StoreUnavailable if the markers cannot be written.
    """
    enforce_halt = app.workspace.setting("enforce_halt")
    with translate_os_errors(str(state_folder())):
        spool_flush.mark_halted(_record(app), halt_markers, sessions, enforce_halt=enforce_halt)


class RejectedEvent(TypedDict):
    """An event that could not be applied, and why."""

    event: str
    reason: str


class FlushAnswer(TypedDict):
    """What a flush did, and the files it exported; `failed` is why it did not."""

    applied: int
    doubled: int
    uncounted: int
    dropped: int
    aside: list[RejectedEvent]
    exported: list[str]
    failed: NotRequired[str]


def as_answer(report: FlushReport, exported: Iterable[str] = ()) -> FlushAnswer:
    """What a flush did, as it goes into JSON."""
    aside = [{"event": place, "reason": reason} for place, reason in report.aside]
    dropped, exported = sum(report.dropped.values()), sorted(set(exported))
    return answer_from(FlushAnswer, report, dropped=dropped, aside=aside, exported=exported)
