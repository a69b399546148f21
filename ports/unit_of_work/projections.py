"""Projections: rows that are computed from other rows, updated in one place.

The unit of work runs `update_projections` over a transaction's changes before it commits, and
before anybody reads projections, so a cascade, an import or a revert cannot forget them.
`find_differences` recomputes everything from scratch and reports where the two disagree, which must
be nowhere.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

from herdbook.domain.plan.model import Task
from herdbook.domain.plan.readiness import WaitingTask
from herdbook.domain.record.model import ScoreEvent, Standing
from herdbook.domain.record.standing import apply, entry_order, fold, is_late, standing_id
from herdbook.ports.engine.dictionary import (
    OPENINGS,
    SCORE_EVENTS,
    STANDINGS,
    TASKS,
    WAITING,
)
from herdbook.ports.engine.kinds import Kind
from herdbook.ports.engine.paging import PAGE, select_all
from herdbook.ports.engine.query import find
from herdbook.ports.unit_of_work.changes import RowChange, group_by_key, net_changes
from herdbook.ports.unit_of_work.readiness_projection import (
    QUEUES,
    SOURCES,
    ReadinessProjection,
    Row,
)

if TYPE_CHECKING:
    from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork

_SOURCES = {*SOURCES, SCORE_EVENTS}


def update_projections(changes: Sequence[RowChange], uow: "UnitOfWork") -> None:
    """Update the projections for what a transaction changed."""
    nets = net_changes(change for change in changes if change.kind in _SOURCES)
    if any(name != SCORE_EVENTS.name for name in nets):
        ReadinessProjection(uow, nets).update()
    if SCORE_EVENTS.name in nets:
        _update_standings(uow, nets[SCORE_EVENTS.name].values())


def _update_standings(uow: "UnitOfWork", changes: Iterable[RowChange]) -> None:
    """Update the standings of the agents these ledger entries belong to."""
    by_agent = group_by_key((event.agent, each) for each in changes for event in each.rows)
    keys = [standing_id(agent) for agent in by_agent]
    known = uow.get(STANDINGS, keys)
    moved: list[Standing] = []
    for (agent, own), before in zip(by_agent.items(), known, strict=True):
        fresh = sorted((each.after for each in own if each.after), key=entry_order)
        changed = any(each.before for each in own)
        if before is None or changed or is_late(before, fresh[0]):
            moved.append(fold(agent, _ledger(uow, agent), uow.experience))
            continue
        moved.append(reduce(lambda s, event: apply(s, event, uow.experience), fresh, before))
    gone = [each.id for each in moved if each.last_event_id is None]
    uow.put_derived(STANDINGS, [each for each in moved if each.id not in gone], gone)


def _ledger(uow: "UnitOfWork", agent: str) -> Iterator[ScoreEvent]:
    return select_all(uow, find(SCORE_EVENTS, {"agent": agent}, limit=PAGE))


def _all_rows(uow: "UnitOfWork", kind: Kind[Any]) -> Iterator[Any]:
    return select_all(uow, find(kind, limit=PAGE))


def _recompute(uow: "UnitOfWork") -> dict[tuple[str, str], Any]:
    """What the projections should be, computed from their sources."""
    tasks = [task for task in _all_rows(uow, TASKS) if not task.is_finished]
    current = ReadinessProjection(uow, {}).current_rows([task.id for task in tasks])
    expected: dict[tuple[str, str], Any] = {}
    for row in compute_queues(uow, tasks, current):
        kind = WAITING if isinstance(row, WaitingTask) else OPENINGS
        expected[kind.name, row.task_id] = row
    for standing in compute_standings(uow):
        expected[STANDINGS.name, standing.id] = standing
    return expected


def compute_queues(
    uow: "UnitOfWork", tasks: Sequence[Task], current: dict[str, Row] | None = None
) -> list[Row]:
    """The rows that these tasks should have in the queues.

    What only these rows hold, renewals and reviewers, is taken from the `current` ones.
    """
    found = ReadinessProjection(uow, {}).recount_rows(tasks, current or {})
    return [row for row in found.values() if row is not None]


def compute_standings(uow: "UnitOfWork") -> list[Standing]:
    """The standings of all agents, from their ledgers."""
    agents = dict.fromkeys(event.agent for event in _all_rows(uow, SCORE_EVENTS))
    return [fold(agent, _ledger(uow, agent), uow.experience) for agent in agents]


def find_differences(uow: "UnitOfWork") -> list[tuple[Any, Any]]:
    """Projections as they are and as they should be, wherever the two differ."""
    expected = _recompute(uow)
    actual = {
        (kind.name, kind.key_of(row)): row
        for kind in (WAITING, OPENINGS, STANDINGS)
        for row in _all_rows(uow, kind)
    }
    keys = sorted({*expected, *actual})
    return [
        (actual.get(key), expected.get(key)) for key in keys if actual.get(key) != expected.get(key)
    ]


def rebuild(uow: "UnitOfWork") -> int:
    """Rewrite the projections where they differ; return how many did."""
    found = find_differences(uow)
    for kind, row_type in (*QUEUES, (STANDINGS, Standing)):
        put = [wanted for _, wanted in found if isinstance(wanted, row_type)]
        gone = [
            kind.key_of(actual)
            for actual, wanted in found
            if isinstance(actual, row_type) and not isinstance(wanted, row_type)
        ]
        uow.put_derived(kind, put, gone)
    return len(found)
