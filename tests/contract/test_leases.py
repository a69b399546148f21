"""How long a claim lasts: leases, heartbeats, retries and giving back."""

from datetime import timedelta

import pytest

from herdbook.domain.entity import evolve
from herdbook.domain.errors import InvalidValue
from herdbook.domain.plan.claims import LEASE, MAX_RETRIES
from herdbook.domain.plan.model import Task, TaskStatus
from herdbook.ports.world.halts import NO_HALTS
from herdbook.services.plan import claims
from tests.cases import for_each
from tests.contract.claims import (
    BLINK,
    add_agents,
    add_tasks,
    claim_for,
    do,
    everything,
    get_task,
    ready_ids,
)
from tests.contract.turns import Begin

PENDING, _, _, COMPLETED, BLOCKED = TaskStatus


def test_a_lease_is_over_at_the_moment_it_ends(begin: Begin) -> None:
    """Not a microsecond before."""
    (agent,) = add_agents(begin)
    (task,) = add_tasks(begin, Task(name="x"))
    claim = claim_for(begin, agent)
    with begin() as uow:
        uow.openings.put(evolve(claim.opening, lease_until=uow.now + BLINK))
        assert claims.ready(uow) == []
        assert claims.claim(uow, agent, halts=NO_HALTS) is None
        uow.openings.put(evolve(claim.opening, lease_until=uow.now))
        assert claims.ready(uow) == [claim.task]
        assert claims.claim(uow, agent, halts=NO_HALTS).task.id == task.id


def test_an_expired_lease_lets_another_take_over_and_counts_a_retry(begin: Begin) -> None:
    """The task stands in the line where it always stood, and has a new fence and a new lease."""
    slow, fast = add_agents(begin, 2)
    first, second, third = add_tasks(begin, *(Task(name="x", order=n) for n in range(3)))
    assert claim_for(begin, slow).task.id == first.id
    held = claim_for(begin, slow, ttl=BLINK)
    assert held.task.id == second.id
    assert ready_ids(begin) == [second.id, third.id]
    with begin() as uow:
        taken = claims.claim(uow, fast, halts=NO_HALTS)
        now = uow.now
        stamp = uow.stamp
        uow.commit()
    assert taken.task == evolve(
        held.task,
        assignee_id=fast,
        fence=2,
        claim_stamp=stamp,
        lease_until=now + LEASE,
        retry_count=1,
        updated_at=now,
        version=3,
    )
    assert held.task.claim_stamp is not None
    assert held.task.claim_stamp < stamp
    assert taken.opening == evolve(held.opening, lease_until=now + LEASE)
    assert ready_ids(begin) == [third.id]


def test_expired_tasks_stand_in_line_by_urgency(begin: Begin) -> None:
    """Whichever lease ended first, and among those that were never held."""
    (agent,) = add_agents(begin)
    tasks = add_tasks(begin, *(Task(name="x", order=n) for n in range(5)))
    with begin() as uow:
        for ttl in (3 * BLINK, LEASE, 2 * BLINK, BLINK):
            claims.claim(uow, agent, halts=NO_HALTS, ttl=ttl)
        claim = claims.claim(uow, agent, halts=NO_HALTS)
        claims.release(uow, claim.task.id, claim.fence)
        uow.commit()
    assert ready_ids(begin) == [tasks[n].id for n in (0, 2, 3, 4)]
    assert ready_ids(begin, limit=2) == [tasks[n].id for n in (0, 2)]


def test_whoever_holds_an_expired_lease_may_still_finish(begin: Begin) -> None:
    """As long as nobody took over, the fence is good."""
    (agent,) = add_agents(begin)
    add_tasks(begin, Task(name="x"))
    claim = claim_for(begin, agent, ttl=BLINK)
    done = do(begin, claims.complete, claim.task.id, claim.fence, "Late")
    assert (done.status, done.summary, done.retry_count) == (COMPLETED, "Late", 0)
    assert ready_ids(begin) == []


def test_a_task_that_was_taken_over_too_often_is_blocked(begin: Begin) -> None:
    """After that many retries it is not given out once more; the next task is."""
    (agent,) = add_agents(begin)
    bad, good = add_tasks(begin, Task(name="x"), Task(name="x", order=1))
    for _ in range(MAX_RETRIES + 1):
        assert claim_for(begin, agent, ttl=BLINK).task.id == bad.id
    assert claim_for(begin, agent).task.id == good.id
    blocked = get_task(begin, bad.id)
    assert (blocked.status, blocked.retry_count) == (BLOCKED, MAX_RETRIES + 1)
    assert ready_ids(begin) == []


def test_many_tasks_that_were_taken_over_too_often_are_blocked_once_each(begin: Begin) -> None:
    """However many stand before the one that is given out."""
    (agent,) = add_agents(begin)
    bad = add_tasks(begin, *(Task(name="x") for _ in range(claims.CANDIDATES + 1)))
    (good,) = add_tasks(begin, Task(name="x", order=1))
    with begin() as uow:
        for _ in bad:
            claims.claim(uow, agent, halts=NO_HALTS, ttl=BLINK)
        uow.commit()
    assert claim_for(begin, agent, max_retries=0).task.id == good.id
    with begin(write=False) as uow:
        after = uow.tasks.get_many(task.id for task in bad)
    assert {(each.status, each.retry_count, each.version) for each in after} == {(BLOCKED, 1, 3)}


def test_a_failed_task_is_ready_again_until_it_failed_too_often(begin: Begin) -> None:
    """Each failure counts a retry; one more than allowed blocks the task."""
    (agent,) = add_agents(begin)
    (task,) = add_tasks(begin, Task(name="x"))
    for retries in (1, 2):
        claim = claim_for(begin, agent)
        failed = do(begin, claims.fail, task.id, claim.fence, max_retries=2)
        assert (failed.status, failed.retry_count) == (PENDING, retries)
        assert (failed.assignee_id, failed.fence) == (None, retries)
        assert ready_ids(begin) == [task.id]
    claim = claim_for(begin, agent)
    failed = do(begin, claims.fail, task.id, claim.fence, max_retries=2)
    assert (failed.status, failed.retry_count) == (BLOCKED, 3)
    assert ready_ids(begin) == []
    assert claim_for(begin, agent) is None


def test_a_retry_by_hand_starts_from_nothing(begin: Begin) -> None:
    """A blocked task becomes ready with its count reset and its fence kept."""
    (agent,) = add_agents(begin)
    (task,) = add_tasks(begin, Task(name="x"))
    claim = claim_for(begin, agent)
    blocked = do(begin, claims.fail, task.id, claim.fence, max_retries=0)
    assert blocked.status is BLOCKED
    again = do(begin, claims.retry, task.id)
    assert (again.status, again.retry_count, again.assignee_id) == (PENDING, 0, None)
    assert again.fence == claim.fence
    assert ready_ids(begin) == [task.id]
    assert claim_for(begin, agent).fence == claim.fence + 1


def test_a_released_task_is_ready_at_once_and_no_retry_is_counted(begin: Begin) -> None:
    """It is as if nobody had had it, but for its fence."""
    (agent,) = add_agents(begin)
    (task,) = add_tasks(begin, Task(name="x"))
    with begin(write=False) as uow:
        opening = uow.openings.get(task.id)
    claim = claim_for(begin, agent)
    released = do(begin, claims.release, task.id, claim.fence)
    assert released == evolve(task, fence=1, updated_at=released.updated_at, version=3)
    with begin(write=False) as uow:
        assert uow.openings.get(task.id) == opening
    assert ready_ids(begin) == [task.id]


def test_a_heartbeat_extends_the_lease_and_writes_nothing_else(begin: Begin) -> None:
    """Neither the task's version nor the journal knows of it."""
    (agent,) = add_agents(begin)
    (task,) = add_tasks(begin, Task(name="x"))
    claim = claim_for(begin, agent, ttl=BLINK)
    with begin() as uow:
        seq = uow.journal.last()
        held = claims.heartbeat(uow, task.id, claim.fence)
        now = uow.now
        uow.commit()
    assert held == evolve(claim.opening, lease_until=now + LEASE)
    with begin(write=False) as uow:
        assert uow.openings.get(task.id) == held
        assert uow.tasks.get(task.id) == claim.task
        assert uow.journal.last() == seq
        assert uow.journal.since(seq) == []
    assert ready_ids(begin) == []


def test_a_heartbeat_never_shortens_a_lease(begin: Begin) -> None:
    """A short beat within a long lease changes nothing."""
    (agent,) = add_agents(begin)
    (task,) = add_tasks(begin, Task(name="x"))
    claim = claim_for(begin, agent)
    assert do(begin, claims.heartbeat, task.id, claim.fence, ttl=BLINK) == claim.opening


@for_each("ttl", [timedelta(0), timedelta(days=-1), timedelta.max])
def test_a_lease_without_an_end_that_can_come_is_refused(begin: Begin, ttl: timedelta) -> None:
    """Neither a claim nor a heartbeat takes it, and the task stays as it was."""
    (agent,) = add_agents(begin)
    add_tasks(begin, Task(name="x"), Task(name="x"))
    claim = claim_for(begin, agent)
    with begin() as uow:
        before = everything(uow)
        with pytest.raises(InvalidValue, match="ttl"):
            claims.claim(uow, agent, halts=NO_HALTS, ttl=ttl)
        with pytest.raises(InvalidValue, match="ttl"):
            claims.heartbeat(uow, claim.task.id, claim.fence, ttl=ttl)
        uow.commit()
    with begin(write=False) as uow:
        assert everything(uow) == before
