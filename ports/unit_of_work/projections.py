"""Rows that follow from other rows, brought up to date in one place.

The unit of work runs `derive` over a transaction's changes before it commits, and before anybody
asks for derived rows, so a cascade, an import or a revert cannot forget them. `differences`
recomputes everything from scratch and tells where the two disagree, which is nowhere.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import reduce
from typing import TYPE_CHECKING, Any

from herdbook.domain.plan.readiness import Waiting
from herdbook.domain.record.model import ScoreEvent, Standing
from herdbook.domain.record.standing import apply, fold, is_late, standing_id
from herdbook.ports.engine.dictionary import (
    INITIATIVES,
    OPENINGS,
    PHASE_DEPENDENCIES,
    PHASES,
    SCORE_EVENTS,
    STANDINGS,
    TASK_DEPENDENCIES,
    TASKS,
    WAITING,
)
from herdbook.ports.engine.kinds import Kind
from herdbook.ports.engine.paging import PAGE, every
from herdbook.ports.engine.query import find
from herdbook.ports.unit_of_work.changes import Change, grouped, net
from herdbook.ports.unit_of_work.readiness_projection import QUEUES, Queues

if TYPE_CHECKING:
    from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork

_SOURCES = {TASKS, TASK_DEPENDENCIES, PHASES, PHASE_DEPENDENCIES, INITIATIVES, SCORE_EVENTS}


def derive(changes: Sequence[Change], uow: "UnitOfWork") -> None:
    """Bring the derived rows up to date with what a transaction changed."""
    nets = net(change for change in changes if change.kind in _SOURCES)
    if any(name != SCORE_EVENTS.name for name in nets):
        Queues(uow, nets).update()
    if SCORE_EVENTS.name in nets:
        _fold_in(uow, nets[SCORE_EVENTS.name].values())


def _fold_in(uow: "UnitOfWork", changes: Iterable[Change]) -> None:
    """Move the standings of the agents these entries of the ledger speak of."""
    by_agent = grouped((event.agent, each) for each in changes for event in each.rows)
    keys = [standing_id(agent) for agent in by_agent]
    known = uow.get(STANDINGS, keys)
    moved: list[Standing] = []
    for (agent, own), before in zip(by_agent.items(), known, strict=True):
        fresh = sorted((each.after for each in own if each.after), key=_place)
        changed = any(each.before for each in own)
        if before is None or changed or is_late(before, fresh[0]):
            moved.append(fold(agent, _ledger(uow, agent), uow.experience))
            continue
        moved.append(reduce(lambda s, event: apply(s, event, uow.experience), fresh, before))
    gone = [each.id for each in moved if each.last_event_id is None]
    uow.put_derived(STANDINGS, [each for each in moved if each.id not in gone], gone)


def _place(event: ScoreEvent) -> tuple[datetime, str]:
    return event.at, event.id


def _ledger(uow: "UnitOfWork", agent: str) -> Iterator[ScoreEvent]:
    return every(uow, find(SCORE_EVENTS, {"agent": agent}, limit=PAGE))


def _every(uow: "UnitOfWork", kind: Kind[Any]) -> Iterator[Any]:
    return every(uow, find(kind, limit=PAGE))


def _recomputed(uow: "UnitOfWork") -> dict[tuple[str, str], Any]:
    """What the derived rows should be, from the rows they follow from."""
    expected: dict[tuple[str, str], Any] = {}
    queues = Queues(uow, {})
    tasks = [task for task in _every(uow, TASKS) if not task.finished]
    rows = queues.before([task.id for task in tasks])
    for key, row in queues.recounted(tasks, rows).items():
        if row is not None:
            kind = WAITING if isinstance(row, Waiting) else OPENINGS
            expected[kind.name, key] = row
    agents = dict.fromkeys(event.agent for event in _every(uow, SCORE_EVENTS))
    for agent in agents:
        standing = fold(agent, _ledger(uow, agent), uow.experience)
        expected[STANDINGS.name, standing.id] = standing
    return expected


def differences(uow: "UnitOfWork") -> list[tuple[Any, Any]]:
    """Derived rows as they are and as they should be, wherever the two differ."""
    expected = _recomputed(uow)
    actual = {
        (kind.name, kind.key_of(row)): row
        for kind in (WAITING, OPENINGS, STANDINGS)
        for row in _every(uow, kind)
    }
    keys = sorted({*expected, *actual})
    return [
        (actual.get(key), expected.get(key)) for key in keys if actual.get(key) != expected.get(key)
    ]


def rebuild(uow: "UnitOfWork") -> int:
    """Write the derived rows anew where they differ; says how many did."""
    found = differences(uow)
    for kind, row_type in (*QUEUES, (STANDINGS, Standing)):
        put = [wanted for _, wanted in found if isinstance(wanted, row_type)]
        gone = [
            kind.key_of(actual)
            for actual, wanted in found
            if isinstance(actual, row_type) and not isinstance(wanted, row_type)
        ]
        uow.put_derived(kind, put, gone)
    return len(found)
