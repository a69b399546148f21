"""Derived rows that were spoilt behind the unit of work's back are found and mended."""

from collections.abc import Callable
from datetime import UTC, datetime

from herdbook.domain.entity import evolve
from herdbook.domain.plan.model import Task, TaskDependency, TaskStatus
from herdbook.domain.plan.readiness import Opening, OpeningState, WaitingTask
from herdbook.domain.record.model import EventKind, ScoreEvent
from herdbook.domain.record.standing import first_standing
from herdbook.ports.engine.dictionary import AGENTS, OPENINGS, STANDINGS, TASK_DEPENDENCIES, WAITING
from herdbook.ports.engine.kinds import Kind
from herdbook.ports.engine.query import find
from herdbook.ports.engine.store import Session, Store
from herdbook.ports.unit_of_work.projections import find_differences, rebuild
from herdbook.ports.world.halts import NO_HALTS
from herdbook.services.plan import claims
from tests.cases import for_each
from tests.contract.claims import BLINK
from tests.contract.rows import make
from tests.contract.turns import Begin

START = datetime(2026, 3, 1, 12, tzinfo=UTC)


Spoil = Callable[[Session], None]


def _delete(kind: Kind[object], key: str) -> Spoil:
    return lambda session: session.delete(kind, [key])


def _insert(kind: Kind[object], row: object) -> Spoil:
    return lambda session: session.insert(kind, [row])


def _replace(kind: Kind[object], key: str, **changes: object) -> Spoil:
    def spoil(session: Session) -> None:
        (row,) = session.get(kind, [key])
        session.replace(kind, [evolve(row, **changes)])

    return spoil


@for_each(
    "spoil",
    [
        _delete(OPENINGS, "open"),
        _delete(WAITING, "waits"),
        _replace(OPENINGS, "open", order=9),
        _replace(OPENINGS, "open", state=OpeningState.HELD, lease_until=START),
        _replace(WAITING, "waits", blockers=7),
        _insert(WAITING, WaitingTask(task_id="open", blockers=1)),
        _insert(WAITING, WaitingTask(task_id="held", blockers=1)),
        _insert(WAITING, WaitingTask(task_id="done", blockers=1)),
        _insert(OPENINGS, Opening(task_id="waits", rank=1, order=0, created_at=START)),
        _insert(OPENINGS, Opening(task_id="nothing", rank=1, order=0, created_at=START)),
    ],
    ids=[
        "a lost opening",
        "a lost wait",
        "an opening out of place",
        "an opening nobody holds",
        "a wrong count",
        "an open task that waits too",
        "a held task that waits too",
        "a finished task that waits",
        "a waiting task that is open too",
        "an opening of no task",
    ],
)
def test_rebuilding_repairs_what_was_spoilt(
    begin: Begin, store: Store, space: str, spoil: Spoil
) -> None:
    """The one difference is found, mended and found no more; all rows are what they were."""
    with begin() as uow:
        agent = make(uow, AGENTS)
        uow.tasks.add(Task(id="held", name="x"))
        claims.claim(uow, agent.id, halts=NO_HALTS)
        uow.tasks.add_all([Task(id=name, name="x") for name in ("open", "waits")])
        uow.tasks.add(Task(id="done", name="x", status=TaskStatus.COMPLETED))
        uow.add(TASK_DEPENDENCIES, [TaskDependency(task_id="waits", depends_on_task_id="open")])
        uow.commit()
    with begin(write=False) as uow:
        whole = [uow.select(find(kind)) for kind in (WAITING, OPENINGS)]
    with store.transaction(space, write=True) as session:
        spoil(session)
        session.commit()
    with begin(write=False) as uow:
        assert len(find_differences(uow)) == 1
    with begin() as uow:
        assert rebuild(uow) == 1
        uow.commit()
    with begin() as uow:
        assert rebuild(uow) == 0
        assert [uow.select(find(kind)) for kind in (WAITING, OPENINGS)] == whole


@for_each(
    "spoil",
    [
        _delete(STANDINGS, first_standing("otter").id),
        _replace(STANDINGS, first_standing("otter").id, bugs=3),
        _insert(STANDINGS, first_standing("nobody")),
    ],
    ids=["a lost standing", "a wrong standing", "a standing of nobody"],
)
def test_rebuilding_repairs_spoilt_standings(
    begin: Begin, store: Store, space: str, spoil: Spoil
) -> None:
    """From the ledger alone."""
    record = space.replace("work", "record", 1)
    with begin(space=record) as uow:
        commit = {"kind": EventKind.COMMIT, "points": 5, "at": START}
        uow.ledger.add_all([ScoreEvent(agent=name, **commit) for name in ("otter", "heron")])
        whole = uow.select(find(STANDINGS))
        uow.commit()
    with store.transaction(record, write=True) as session:
        spoil(session)
        session.commit()
    with begin(space=record) as uow:
        assert (rebuild(uow), rebuild(uow)) == (1, 0)
        uow.commit()
    with begin(space=record, write=False) as uow:
        assert uow.select(find(STANDINGS)) == whole


def test_a_held_task_whose_row_was_lost_can_be_kept_and_can_be_taken(
    begin: Begin, store: Store, space: str
) -> None:
    """Rebuilt, it is held for the lease of its claim, be it over or not; a heartbeat renews it."""
    with begin() as uow:
        agent = make(uow, AGENTS)
        uow.tasks.add(Task(id="t", name="x"))
        claim = claims.claim(uow, agent.id, halts=NO_HALTS, ttl=BLINK)
        uow.tasks.add(Task(id="u", name="y"))
        long = claims.claim(uow, agent.id, halts=NO_HALTS)
        uow.commit()
    with store.transaction(space, write=True) as session:
        session.delete(OPENINGS, ["t", "u"])
        session.commit()
    with begin() as uow:
        assert rebuild(uow) == 2
        assert [uow.openings.get(key) for key in "tu"] == [claim.opening, long.opening]
        uow.commit()
    with begin() as uow:
        assert [task.id for task in uow.tasks.ready(9)] == ["t"]
        claims.heartbeat(uow, "t", claim.fence)
        assert uow.tasks.ready(9) == []
