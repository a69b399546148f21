"""Who held which task from when to when: `lanes`."""

from datetime import UTC, datetime
from typing import NotRequired, TypedDict

from herdbook.domain.errors import HerdbookError
from herdbook.domain.journal import Position
from herdbook.domain.location.areas import Area
from herdbook.domain.plan.lanes import ClaimEnd, LaneMark, LaneState
from herdbook.domain.record.model import Commit
from herdbook.entrypoints.context import AppContext
from herdbook.entrypoints.operations.advice.handlers import names_of
from herdbook.entrypoints.operations.answer_fields import answer_from
from herdbook.entrypoints.operations.past_answer import PastAnswer, past_note
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services.plan.lanes import WINDOW, Lane, LaneGroup, read_lanes
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


class TimeLaneAnswer(TypedDict):
    """One lane: what it is of, its bars and its marks; without an id, of none or not known."""

    id: str | None
    name: str | None
    status: str | None
    gone: bool
    tracks: int
    spans: list[SpanAnswer]
    marks: list[LaneMark]


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
        return answer_from(
            LanesAnswer,
            window,
            since=window.begin,
            until=window.end,
            cut=window.is_cut,
            group=LaneGroup(group),
            spans=window.span_count,
            lanes=[_lane(each) for each in window.lanes],
            gaps=[{"since": since, "until": until} for since, until in window.gaps],
            **past_note(uow),
        )

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


def _lane(lane: Lane) -> TimeLaneAnswer:
    spans = [answer_from(SpanAnswer, each, each.span, over=each.is_over) for each in lane.spans]
    return answer_from(TimeLaneAnswer, lane, gone=lane.is_gone, spans=spans)
