"""Agents whose processes are gone, and what becomes of what they held, on every store."""

import os
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from herdbook.adapters.system.processes import process_start
from herdbook.domain.agents.model import Agent, AgentStatus
from herdbook.domain.entity import evolve
from herdbook.domain.errors import StaleFence
from herdbook.domain.journal import Actor
from herdbook.domain.plan.claims import MAX_RETRIES
from herdbook.domain.plan.model import Task, TaskStatus
from herdbook.domain.plan.readiness import OpeningKind
from herdbook.ports.world.halts import NO_HALTS
from herdbook.services.agents import agent_lifecycle
from herdbook.services.plan import claims
from tests.cases import for_each
from tests.contract.children import Child
from tests.contract.claims import (
    WRITES,
    add_agents,
    add_initiative,
    add_tasks,
    claim_for,
    do,
    everything,
    get_task,
    ready_ids,
)
from tests.contract.turns import Begin

IDLE, RUNNING, WAITING, _, CRASHED = AgentStatus
HERE = "here"
PROCESS = {"host": HERE, "pid": 7, "process_started_at": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)}


def _get(begin: Begin, agent_id: str) -> Agent:
    with begin(write=False) as uow:
        return uow.agents.get(agent_id)


def _nobody(_: int) -> datetime | None:
    """A machine on which no process runs."""
    return None


def test_a_killed_process_is_found_and_what_it_held_is_free(begin: Begin) -> None:
    """Ended by kill -9, asked of the machine itself; one that lives on keeps what it has."""
    victim, survivor = Child(time.sleep, 600), Child(time.sleep, 600)
    try:
        agents = [
            do(
                begin,
                agent_lifecycle.register,
                host=HERE,
                pid=child.pid,
                process_started_at=process_start(child.pid),
            )
            for child in (victim, survivor)
        ]
        tasks = add_tasks(begin, *(Task(name="x", order=n) for n in range(2)))
        for agent in agents:
            claim_for(begin, agent.id)
        assert do(begin, agent_lifecycle.find_crashed, HERE, process_start) == []
        victim.kill()
        victim.wait()
        (crashed,) = do(begin, agent_lifecycle.find_crashed, HERE, process_start)
        assert (crashed.id, crashed.status) == (agents[0].id, CRASHED)
        assert _get(begin, crashed.id) == crashed
        assert (_get(begin, agents[1].id).task_id, crashed.task_id) == (tasks[1].id, None)
        assert ready_ids(begin) == [tasks[0].id]
    finally:
        for child in (victim, survivor):
            child.kill()
            child.wait()


def test_another_process_of_the_same_number_does_not_keep_an_agent_alive(begin: Begin) -> None:
    """Its number runs, but it was started at another time."""
    start = process_start(os.getpid())
    assert start is not None
    alive = do(
        begin, agent_lifecycle.register, host=HERE, pid=os.getpid(), process_started_at=start
    )
    before = start - timedelta(days=1)
    gone = do(
        begin, agent_lifecycle.register, host=HERE, pid=os.getpid(), process_started_at=before
    )
    assert [each.id for each in do(begin, agent_lifecycle.find_crashed, HERE, process_start)] == [
        gone.id
    ]
    assert _get(begin, alive.id).status is IDLE


@for_each("status", AgentStatus)
def test_only_agents_at_work_crash(begin: Begin, status: AgentStatus) -> None:
    """One that waits or has no task has a process too; one that has ended needs none."""
    with begin() as uow:
        agent = uow.agents.add(Agent(name="x", status=status, pending_questions=["?"], **PROCESS))
        uow.commit()
    found = do(begin, agent_lifecycle.find_crashed, HERE, _nobody)
    if status in (IDLE, RUNNING, WAITING):
        (crashed,) = found
        assert crashed == evolve(agent, status=CRASHED, updated_at=crashed.updated_at, version=2)
    else:
        assert found == []
        assert _get(begin, agent.id) == agent


def test_agents_of_other_hosts_are_left_alone(begin: Begin) -> None:
    """Nor is anything said of one whose process nobody knows."""
    do(begin, agent_lifecycle.register, **{**PROCESS, "host": "there"})
    do(begin, agent_lifecycle.register, host=HERE)

    def refuse(pid: int) -> datetime | None:
        raise AssertionError(f"process {pid} of another machine was looked for here")

    assert do(begin, agent_lifecycle.find_crashed, HERE, refuse) == []


def test_looking_for_the_crashed_twice_changes_nothing_more(begin: Begin) -> None:
    """Whoever was found once is not found again, and its task counts one retry."""
    agent = do(begin, agent_lifecycle.register, **PROCESS)
    add_tasks(begin, Task(name="x"))
    claim_for(begin, agent.id)
    assert len(do(begin, agent_lifecycle.find_crashed, HERE, _nobody)) == 1
    with begin(write=False) as uow:
        before = everything(uow)
    assert do(begin, agent_lifecycle.find_crashed, HERE, _nobody) == []
    with begin(write=False) as uow:
        assert everything(uow) == before


def test_a_crash_counts_a_retry_as_an_expired_lease_does(begin: Begin) -> None:
    """Whoever claims the task next has it at once, one fence and one retry further."""
    agent = do(begin, agent_lifecycle.register, **PROCESS)
    (other,) = add_agents(begin)
    (task,) = add_tasks(begin, Task(name="x"))
    claim_for(begin, agent.id)
    assert claim_for(begin, other) is None
    do(begin, agent_lifecycle.find_crashed, HERE, _nobody)
    taken = claim_for(begin, other)
    assert (taken.task.id, taken.task.assignee_id) == (task.id, other)
    assert (taken.fence, taken.task.retry_count) == (2, 1)


def test_a_task_whose_agents_crash_too_often_is_blocked(begin: Begin) -> None:
    """After that many retries it is given out no more."""
    (task,) = add_tasks(begin, Task(name="x"))
    for number in range(MAX_RETRIES + 1):
        agent = do(begin, agent_lifecycle.register, **PROCESS)
        assert claim_for(begin, agent.id).task.retry_count == number
        do(begin, agent_lifecycle.find_crashed, HERE, _nobody)
    assert get_task(begin, task.id).status is TaskStatus.BLOCKED
    assert ready_ids(begin) == []


@for_each("taken", [False, True], ids=["free", "taken"])
@for_each("write", WRITES, ids=lambda write: write.__name__)
def test_the_fence_of_a_crashed_agent_is_refused(
    begin: Begin, write: Callable[..., object], taken: bool
) -> None:
    """Whether or not somebody else has the task by then."""
    agent = do(begin, agent_lifecycle.register, **PROCESS)
    (other,) = add_agents(begin)
    add_tasks(begin, Task(name="x"))
    claim = claim_for(begin, agent.id)
    do(begin, agent_lifecycle.find_crashed, HERE, _nobody)
    if taken:
        claim_for(begin, other)
    with begin() as uow:
        before = everything(uow)
        with pytest.raises(StaleFence):
            write(uow, claim.task.id, claim.fence)
        uow.commit()
    with begin(write=False) as uow:
        assert everything(uow) == before


def test_what_a_crashed_agent_has_done_stays_done(begin: Begin) -> None:
    """Neither its finished tasks nor those others review are touched."""
    agent = do(begin, agent_lifecycle.register, **PROCESS)
    (reviewer,) = add_agents(begin)
    initiative = add_initiative(begin, quality_review=True)
    tasks = [Task(name="x"), Task(name="x", order=1, initiative_id=initiative.id)]
    done, reviewed = add_tasks(begin, *tasks)
    for _ in tasks:
        claim = claim_for(begin, agent.id)
        do(begin, claims.complete, claim.task.id, claim.fence)
    review = claim_for(begin, reviewer)
    assert (review.task.id, review.opening.kind) == (reviewed.id, OpeningKind.REVIEW)
    with begin(write=False) as uow:
        before = uow.tasks.get_many([done.id, reviewed.id]), uow.openings.get(reviewed.id)
    do(begin, agent_lifecycle.find_crashed, HERE, _nobody)
    with begin(write=False) as uow:
        after = uow.tasks.get_many([done.id, reviewed.id]), uow.openings.get(reviewed.id)
    assert after == before
    assert do(begin, claims.complete, reviewed.id, review.fence).is_finished


def test_the_review_of_a_crashed_agent_is_free_for_others(begin: Begin) -> None:
    """It took the review in its own name; its fence is refused, another's review is left alone."""
    (author,) = add_agents(begin)
    crashing = do(begin, agent_lifecycle.register, **PROCESS)
    careful = do(begin, agent_lifecycle.register)
    initiative = add_initiative(begin, quality_review=True)
    rows = [Task(name="x", order=n, initiative_id=initiative.id) for n in range(2)]
    first, second = add_tasks(begin, *rows)
    for _ in rows:
        claim = claim_for(begin, author)
        do(begin, claims.complete, claim.task.id, claim.fence)
    reviews = []
    for agent in (crashing, careful):
        with begin(actor=Actor(agent=agent.name)) as uow:
            reviews.append(claims.claim(uow, agent.id, halts=NO_HALTS))
            uow.commit()
    assert [review.task.id for review in reviews] == [first.id, second.id]
    do(begin, agent_lifecycle.find_crashed, HERE, _nobody)
    assert ready_ids(begin) == [first.id]
    with begin() as uow, pytest.raises(StaleFence):
        claims.complete(uow, first.id, reviews[0].fence)
    again = claim_for(begin, careful.id)
    assert (again.task.id, again.opening.kind) == (first.id, OpeningKind.REVIEW)
    assert (again.task.assignee_id, again.task.retry_count) == (author, 1)
    for task, fence in ((first, again.fence), (second, reviews[1].fence)):
        assert do(begin, claims.complete, task.id, fence).is_finished
