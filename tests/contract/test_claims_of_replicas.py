"""Two replicas that count claims on their own: a number never passes for another one's claim."""

from collections.abc import Callable
from functools import partial

import pytest

from herdbook.domain.agents.model import Agent
from herdbook.domain.entity import evolve
from herdbook.domain.errors import StaleFence
from herdbook.domain.journal import Provenance
from herdbook.domain.plan.claims import Claim, Fence
from herdbook.domain.plan.model import Task, TaskStatus
from herdbook.ports.engine.dictionary import TASKS
from herdbook.ports.engine.store import Store
from herdbook.ports.unit_of_work.run import run
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.ports.world.halts import NO_HALTS
from herdbook.services.plan import claims
from herdbook.services.stores.copy_spaces import copy
from herdbook.services.stores.merge_spaces import merge
from tests.contract.conftest import Begin

WRITES: list[Callable[..., object]] = [
    claims.heartbeat,
    claims.release,
    claims.fail,
    claims.complete,
]


def _begin_plan(begin: Begin) -> tuple[str, str, str]:
    """The ids of a task and of two agents."""
    with begin() as uow:
        task = uow.tasks.add(Task(name="a task"))
        ours, theirs = uow.agents.add_all([Agent(name="ours"), Agent(name="theirs")])
        uow.commit()
    return task.id, ours.id, theirs.id


def _claim(store: Store, space: str, agent_id: str, task_id: str) -> Claim:
    claimed: Claim | None = run(
        store, space, claims.claim, agent_id, halts=NO_HALTS, task_id=task_id
    )
    assert claimed is not None
    return claimed


def _receive(uow: UnitOfWork, theirs: Claim) -> None:
    """Save their row over ours, as a change that they have made."""
    assert theirs.stamp is not None
    uow.receive(Provenance(theirs.stamp, "tx_there"))
    ours = vars(uow.tasks.get(theirs.task.id))
    group = {name: vars(theirs.task)[name] for each in TASKS.groups for name in each}
    uow.tasks.save(Task(**{**ours, **group}))


def _refused(store: Store, space: str, task_id: str, fence: Fence | None) -> None:
    assert fence is not None
    for write in WRITES:
        with pytest.raises(StaleFence):
            run(store, space, write, task_id, fence)


def test_a_claim_of_another_replica_is_not_ours_by_its_number(
    store: Store, begin: Begin, space: str, fresh: Callable[..., Store]
) -> None:
    """Both count to 1; once their row has come here, our number is refused, and their stamp not."""
    task_id, our_agent, their_agent = _begin_plan(begin)
    other = fresh()
    copy(store, other, [space])
    ours = _claim(store, space, our_agent, task_id)
    theirs = _claim(other, space, their_agent, task_id)
    assert (ours.fence, theirs.fence) == (1, 1)
    assert ours.stamp != theirs.stamp
    _refused(store, space, task_id, theirs.stamp)
    run(store, space, claims.heartbeat, task_id, ours.fence)
    run(store, space, _receive, theirs)
    _refused(store, space, task_id, ours.fence)
    _refused(store, space, task_id, ours.stamp)
    with begin(write=False) as uow, pytest.raises(StaleFence, match="theirs holds it"):
        claims.own_fence(uow, task_id, our_agent)
    done: Task = run(store, space, claims.complete, task_id, theirs.stamp)
    assert done.status is TaskStatus.COMPLETED


def test_a_merged_row_is_not_claimed_by_a_number_that_we_gave(
    store: Store, begin: Begin, space: str, fresh: Callable[..., Store]
) -> None:
    """A task that we claimed and removed comes back by a merge, as somebody else's."""
    task_id, our_agent, their_agent = _begin_plan(begin)
    other = fresh()
    copy(store, other, [space])
    ours = _claim(store, space, our_agent, task_id)
    theirs = _claim(other, space, their_agent, task_id)
    assert merge(other, store, [space]).added == 0
    _refused(store, space, task_id, theirs.stamp)
    with begin() as uow:
        uow.tasks.remove(task_id)
        uow.commit()
    assert merge(other, store, [space]).added == 1
    with begin(write=False) as uow:
        assert (uow.tasks.get(task_id).fence, uow.tasks.get(task_id).claim_stamp) == (
            ours.fence,
            theirs.stamp,
        )
    _refused(store, space, task_id, ours.fence)
    _refused(store, space, task_id, ours.stamp)
    run(store, space, claims.heartbeat, task_id, theirs.stamp)
    run(store, space, claims.complete, task_id, theirs.stamp)


def test_a_claim_goes_along_with_its_store(
    store: Store, begin: Begin, space: str, fresh: Callable[..., Store]
) -> None:
    """In a copy, and for a row that only a merge brought, the number is the claim's as before."""
    task_id, our_agent, _ = _begin_plan(begin)
    claim = _claim(store, space, our_agent, task_id)
    copied, merged = fresh(), fresh()
    copy(store, copied, [space])
    merge(store, merged, [space])
    for there in (store, copied, merged):
        renew = partial(run, there, space, claims.heartbeat, task_id)
        renew(claim.fence)
        renew(claim.stamp)
        with pytest.raises(StaleFence):
            renew(claim.fence + 1)
        run(there, space, claims.complete, task_id, claim.fence)


def test_a_later_claim_of_ours_has_a_number_of_its_own(
    store: Store, begin: Begin, space: str, fresh: Callable[..., Store]
) -> None:
    """After theirs was released, we claim again: only the last number and stamp are good."""
    task_id, our_agent, their_agent = _begin_plan(begin)
    other = fresh()
    copy(store, other, [space])
    first = _claim(store, space, our_agent, task_id)
    theirs = _claim(other, space, their_agent, task_id)
    run(store, space, _receive, theirs)
    run(store, space, claims.release, task_id, theirs.stamp)
    again = _claim(store, space, our_agent, task_id)
    assert again.fence == 2
    for fence in (first.fence, first.stamp, theirs.stamp):
        _refused(store, space, task_id, fence)
    held = evolve(again.task)
    assert run(store, space, claims.release, task_id, again.fence).fence == held.fence
