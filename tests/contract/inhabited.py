"""Spaces with something of everything in them, and what they hold when they have moved."""

from typing import Any

from herdbook.domain.entity import evolve
from herdbook.domain.location.areas import area_of
from herdbook.domain.plan.model import Priority, Task
from herdbook.ports.engine.dictionary import AGENTS, OPERATIONS, TASKS
from herdbook.ports.engine.digests import COPY_NOTE
from herdbook.ports.engine.store import Store
from herdbook.ports.unit_of_work.run import run
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.ports.world.halts import NO_HALTS
from herdbook.services.plan import claims
from tests.contract.rows import ENTITIES, KEPT, make
from tests.contract.space import everything_in, work_in

AGENT = "agt_worker"


def record_of(space: str) -> str:
    """The record that goes with a space of work."""
    return space.replace("work", "record", 1)


def inhabit(store: Store, space: str) -> None:
    """Add rows of every kind, bare and full; save some, remove some, hold a task."""
    kinds = [kind for kind in ENTITIES if kind.area is area_of(space)]
    with work_in(store, space) as uow:
        rows = {kind: [make(uow, kind), make(uow, kind, full=True)] for kind in kinds}
        uow.commit()
    with work_in(store, space) as uow:
        for kind in kinds:
            bare, full = rows[kind]
            if kind in KEPT:
                (current,) = uow.get_existing(kind, [full.id])
                uow.save(kind, [current])
            if kind is not AGENTS:
                uow.remove(kind, [bare.id]) if uow.get(kind, [bare.id]) != [None] else None
        uow.commit()
    if TASKS in kinds:
        run(store, space, _hold, operation_id="op_hold")


def _hold(uow: UnitOfWork) -> str:
    make(uow, AGENTS, id=AGENT)
    task = uow.tasks.add(Task(name="held", order=-9, priority=Priority.HIGH))
    claim = claims.claim(uow, AGENT, halts=NO_HALTS)
    assert claim is not None
    assert claim.task.id == task.id
    return task.id


def work_on(store: Store, space: str) -> None:
    """Add a task, claim it and complete it."""
    with work_in(store, space) as uow:
        task = uow.tasks.add(Task(name="new here", order=-99))
        claim = claims.claim(uow, AGENT, halts=NO_HALTS)
        assert claim is not None
        assert claim.task.id == task.id
        claims.complete(uow, task.id, claim.fence, "done")
        uow.commit()


def content(store: Store, space: str) -> dict[str, list[Any]]:
    """All rows of a space but the note that a copy leaves."""
    found = everything_in(store, space)
    kept = [row for row in found.pop(OPERATIONS.name, []) if row.operation_id != COPY_NOTE]
    return {**found, OPERATIONS.name: kept} if kept else found


def rename(uow: UnitOfWork, key: str, name: str) -> None:
    """Give an agent another name."""
    uow.agents.save(evolve(uow.agents.get(key), name=name))
