"""Lanes: one row per agent, worktree or phase, with who held which task when, from the journal."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import PurePath
from typing import Any, NamedTuple

from attrs import evolve, frozen

from herdbook.domain.agents.model import ACTIVE_STATUSES, Worktree
from herdbook.domain.entity import WorkEntity
from herdbook.domain.errors import InvalidValue
from herdbook.domain.plan import lanes as rules
from herdbook.domain.plan.lanes import LaneMark, LaneSpan, find_tracks, idle_gaps
from herdbook.domain.record.model import Commit
from herdbook.ports.engine.dictionary import AGENTS, PHASES, WORKTREES
from herdbook.ports.engine.kinds import Kind
from herdbook.ports.engine.paging import PAGE, select_all
from herdbook.ports.engine.query import any_of, find
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services.plan.lane_history import LaneHistory, NamedSpan

WINDOW = timedelta(hours=8)
"""How long a window is unless it is said."""
LIMIT = 100
"""How many lanes are told unless it is said."""
MAX_ENTRIES = 50_000
"""How many entries of the journal are read at most."""


class LaneGroup(StrEnum):
    """What a lane is of."""

    AGENT = "agent"
    WORKTREE = "worktree"
    PHASE = "phase"


@frozen
class Lane:
    """One row: its spans, in as many tracks as claims lasted at the same time, and its marks.

    `is_gone` says that its agent, worktree or phase was removed since; without an id, it is for
    what belongs to none.
    """

    id: str | None
    name: str | None
    spans: tuple[NamedSpan, ...] = ()
    marks: tuple[LaneMark, ...] = ()
    tracks: int = 1
    status: str | None = None
    is_gone: bool = False


@frozen
class LaneWindow:
    """The lanes of a window of time, those with something in them first.

    All is known from `known_since` on: if that is later than `begin`, the journal begins there, or
    was read no further (`is_cut`). `total` counts all lanes, `idle` those of them that are empty,
    and `span_count` the spans of all.
    """

    begin: datetime
    end: datetime
    now: datetime
    seq: int
    known_since: datetime
    is_cut: bool
    lanes: tuple[Lane, ...]
    total: int
    idle: int
    span_count: int
    gaps: tuple[tuple[datetime, datetime], ...]


def read_lanes(
    uow: UnitOfWork,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
    group: LaneGroup = LaneGroup.AGENT,
    limit: int = LIMIT,
    commits: Sequence[Commit] = (),
) -> LaneWindow:
    """The lanes from a time on until another, or until the moment that is read.

    Raises InvalidValue for a window that ends before it begins.
    """
    end = until or uow.now
    begin = end - WINDOW if since is None else since
    if begin >= end:
        reason = f"is {begin.isoformat()}, and the window ends at {end.isoformat()}"
        raise InvalidValue("from", reason)
    newest, known_since, is_cut = uow.journal.newest_since(begin, rules.TRACED, most=MAX_ENTRIES)
    history = LaneHistory(uow, newest[::-1], max(begin, known_since))
    spans = [each for each in history.spans if each.since <= end and (each.until or end) >= begin]
    marks = [each for each in history.marks if begin <= each.at <= end]
    marks += history.commit_marks([each for each in commits if begin <= each.at <= end])
    lanes = _LaneRows(history, LaneGroup(group), spans).build(marks)
    idle = _idle_lanes(uow, LaneGroup(group), {each.id for each in lanes})
    shown = [*lanes, *idle][: max(1, limit)]
    return LaneWindow(
        begin,
        end,
        uow.now,
        uow.journal.last(),
        known_since,
        is_cut,
        tuple(shown),
        len(lanes) + len(idle),
        len(idle),
        len(spans),
        tuple(idle_gaps(spans, marks, begin, end, uow.now)),
    )


class _LaneName(NamedTuple):
    """What a lane is called, the status of its row, and whether that is gone."""

    name: str | None = None
    status: str | None = None
    is_gone: bool = False


class _LaneRows:
    """Groups spans and marks into lanes."""

    def __init__(self, history: LaneHistory, group: LaneGroup, spans: Sequence[LaneSpan]) -> None:
        self._history = history
        self._group = group
        self._spans: defaultdict[str | None, list[LaneSpan]] = defaultdict(list)
        self._by_agent: defaultdict[str | None, list[LaneSpan]] = defaultdict(list)
        for span in spans:
            self._spans[self._lane_of(span)].append(span)
            self._by_agent[span.agent_id].append(span)

    def build(self, marks: Sequence[LaneMark]) -> list[Lane]:
        """The lanes that have something in them, by name; the one of none comes last."""
        own_marks: defaultdict[str | None, list[LaneMark]] = defaultdict(list)
        for mark in sorted(marks, key=lambda each: each.at):
            agent = self._history.values(rules.AGENT, mark.agent_id).get("name")
            own_marks[self._lane_of_mark(mark)].append(evolve(mark, agent=agent))
        keys = list(dict.fromkeys([*self._spans, *own_marks]))
        names = self._names([each for each in keys if each is not None])
        lanes = []
        for key in keys:
            spans = self._spans[key]
            name = names.get(key or "", _LaneName())
            lanes.append(
                Lane(
                    key,
                    name.name,
                    tuple(self._history.name_spans(spans)),
                    tuple(own_marks[key]),
                    max(1, find_tracks(spans)[1]),
                    name.status,
                    name.is_gone,
                )
            )
        return sorted(lanes, key=lambda each: (each.id is None, each.name or "", each.id or ""))

    def _lane_of(self, span: LaneSpan) -> str | None:
        if self._group is LaneGroup.AGENT:
            return span.agent_id
        if self._group is LaneGroup.WORKTREE:
            return span.worktree_id
        return self._phase_of(span.task_id)

    def _phase_of(self, task_id: str | None) -> str | None:
        phase: str | None = self._history.values(rules.TASK, task_id).get("phase_id")
        return phase

    def _lane_of_mark(self, mark: LaneMark) -> str | None:
        """The lane of its task, else of what its agent held then or before."""
        if self._group is LaneGroup.AGENT:
            return mark.agent_id
        if self._group is LaneGroup.PHASE and mark.task_id is not None:
            return self._phase_of(mark.task_id)
        before = [each for each in self._by_agent[mark.agent_id] if each.since <= mark.at]
        if before:
            return self._lane_of(before[-1])
        if self._group is LaneGroup.PHASE:
            return None
        worktree: str | None = self._history.values(rules.AGENT, mark.agent_id).get("worktree_id")
        return worktree

    def _names(self, keys: list[str]) -> dict[str, _LaneName]:
        if self._group is LaneGroup.AGENT:
            return {
                key: _LaneName(
                    self._history.values(rules.AGENT, key).get("name"),
                    self._history.agent_status(key),
                    self._history.is_gone(key),
                )
                for key in keys
            }
        kind: Kind[Any] = WORKTREES if self._group is LaneGroup.WORKTREE else PHASES
        rows = self._history.uow.get(kind, keys)
        return {
            key: _LaneName(is_gone=True) if row is None else _LaneName(_row_name(row), _status(row))
            for key, row in zip(keys, rows, strict=True)
        }


def _row_name(row: WorkEntity) -> str:
    """The name of a phase or an agent; of a worktree, its branch or the end of its path."""
    if isinstance(row, Worktree):
        return row.branch or PurePath(row.path).name or row.path
    return str(vars(row)["name"])


def _status(row: WorkEntity) -> str | None:
    status = getattr(row, "status", None)
    return None if status is None else str(status)


def _idle_lanes(uow: UnitOfWork, group: LaneGroup, busy: Collection[str | None]) -> list[Lane]:
    """The agents that have not ended, or the worktrees, that are in no lane yet, by name."""
    if group is LaneGroup.PHASE:
        return []
    query: Any = (
        find(AGENTS, {"status": any_of(ACTIVE_STATUSES)}, limit=PAGE)
        if group is LaneGroup.AGENT
        else find(WORKTREES, limit=PAGE)
    )
    rows = [each for each in select_all(uow, query) if each.id not in busy]
    lanes = [Lane(each.id, _row_name(each), status=_status(each)) for each in rows]
    return sorted(lanes, key=lambda each: (each.name or "", each.id or ""))
