"""Who held which task from when to when: `lanes`."""

from datetime import UTC, datetime
from typing import NotRequired, TypedDict

from herdbook.domain.errors import HerdbookError
from herdbook.domain.journal import Position
from herdbook.domain.location.areas import Area
from herdbook.domain.plan.lanes import ClaimEnd, LaneMark, LaneState, MarkKind
from herdbook.domain.record.model import Commit
from herdbook.entrypoints.context import AppContext
from herdbook.entrypoints.operations.advice.handlers import names_of
from herdbook.entrypoints.operations.past_answer import PastAnswer, past_note
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services.plan.lane_history import NamedSpan
from herdbook.services.plan.lanes import WINDOW, Lane, LaneGroup, LaneWindow, read_lanes
from herdbook.services.record.project_commits import project_commits

MOST_LANES = 1_000
"""How many lanes may be asked for."""


class SpanAnswer(TypedDict):
    """A time in which an agent held a task in one state; `to` is null while it lasts.

    `track` is its place in the lane, from 0 on. `over` says that the lease of the claim has ended.
    """

    task_id: str | None
    task: str | None
    agent_id: str | None
    agent: str | None
    state: LaneState
    since: datetime
    until: datetime | None
    claimed_at: datetime
    end: ClaimEnd | None
    track: int
    over: bool


class MarkAnswer(TypedDict):
    """A question, its answer, or a commit; `subject` is the id of the row, or the hash."""

    kind: MarkKind
    at: datetime
    agent_id: str | None
    agent: str | None
    task_id: str | None
    subject: str
    text: str


class TimeLaneAnswer(TypedDict):
    """One lane: what it is of, its bars and its marks; without an id, of none or not known."""

    id: str | None
    name: str | None
    status: str | None
    gone: bool
    tracks: int
    spans: list[SpanAnswer]
    marks: list[MarkAnswer]


class GapAnswer(TypedDict):
    """A long time in which nothing happened."""

    since: datetime
    until: datetime


class LanesAnswer(TypedDict):
    """The lanes of a window of time, those with something in them first.

    Nothing is known before `known_since`: the journal begins there, or was read no further (`cut`).
    `total` counts all lanes, `idle` those of them in which nothing is, `spans` all bars.
    """

    seq: int
    now: datetime
    since: datetime
    until: datetime
    known_since: datetime
    cut: bool
    group: LaneGroup
    total: int
    idle: int
    spans: int
    lanes: list[TimeLaneAnswer]
    gaps: list[GapAnswer]
    as_of: NotRequired[PastAnswer]


def lanes(
    app: AppContext,
    *,
    from_: datetime | None,
    to: datetime | None,
    group: str,
    limit: int,
    at: Position | None = None,
) -> LanesAnswer:
    """Who held which task in a window of time, its questions and commits, a lane for each."""
    since, until = (None if each is None else each.astimezone(UTC) for each in (from_, to))
    now = app.read(Area.WORK, lambda uow: uow.now, at=at)
    end = until or now
    commits = _read_commits(app, end - WINDOW if since is None else since, min(end, now))

    def look(uow: UnitOfWork) -> LanesAnswer:
        window = read_lanes(
            uow,
            since=since,
            until=until,
            group=LaneGroup(group),
            limit=min(limit, MOST_LANES),
            commits=commits,
        )
        return {**_window(window, LaneGroup(group)), **past_note(uow)}

    found = app.read(Area.WORK, look, at=at)
    if found["cut"] and end < now:
        # So much came after the window that it was not reached: how its claims ended is not told.
        return app.read(Area.WORK, look, at=end)
    return found


def _read_commits(app: AppContext, since: datetime, until: datetime) -> list[Commit]:
    """The commits of the repository in a time; none, with a warning, if the record has gone."""
    try:
        return app.read(Area.RECORD, project_commits, names_of(app), since, until)
    except HerdbookError as error:
        app.warn(f"commits are not known: {error}")
        return []


def _window(window: LaneWindow, group: LaneGroup) -> LanesAnswer:
    return {
        "seq": window.seq,
        "now": window.now,
        "since": window.begin,
        "until": window.end,
        "known_since": window.known_since,
        "cut": window.is_cut,
        "group": group,
        "total": window.total,
        "idle": window.idle,
        "spans": window.span_count,
        "lanes": [_lane(each) for each in window.lanes],
        "gaps": [{"since": since, "until": until} for since, until in window.gaps],
    }


def _lane(lane: Lane) -> TimeLaneAnswer:
    return {
        "id": lane.id,
        "name": lane.name,
        "status": lane.status,
        "gone": lane.is_gone,
        "tracks": lane.tracks,
        "spans": [_span(each) for each in lane.spans],
        "marks": [_mark(each) for each in lane.marks],
    }


def _span(named: NamedSpan) -> SpanAnswer:
    span = named.span
    return {
        "task_id": span.task_id,
        "task": named.task,
        "agent_id": span.agent_id,
        "agent": named.agent,
        "state": span.state,
        "since": span.since,
        "until": span.until,
        "claimed_at": span.claimed_at,
        "end": span.end,
        "track": named.track,
        "over": named.is_over,
    }


def _mark(mark: LaneMark) -> MarkAnswer:
    return {
        "kind": mark.kind,
        "at": mark.at,
        "agent_id": mark.agent_id,
        "agent": mark.agent,
        "task_id": mark.task_id,
        "subject": mark.subject,
        "text": mark.text,
    }
