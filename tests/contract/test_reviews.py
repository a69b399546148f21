"""What follows the work: reviews of tasks, beginnings and ends of phases."""

from collections.abc import Callable

import pytest

from herdbook.domain.entity import evolve
from herdbook.domain.errors import StaleFence
from herdbook.domain.plan.model import ExecutionMode, PhaseStatus, Task, TaskCategory, TaskStatus
from herdbook.domain.plan.readiness import OpeningKind, OpeningState
from herdbook.ports.engine.dictionary import TASKS
from herdbook.services.plan import claims
from tests.cases import for_each
from tests.contract.claims import (
    BLINK,
    add_agents,
    add_initiative,
    add_phase,
    add_tasks,
    claim_for,
    do,
    every_write,
    get_phase,
    ready_ids,
)
from tests.contract.rows import make
from tests.contract.turns import Begin

PENDING, _, QUALITY_REVIEW, COMPLETED, BLOCKED = TaskStatus


def _under_review(begin: Begin) -> tuple[str, str, Task]:
    """Who did the work, who did not, and a task that waits for its review."""
    worker, reviewer = add_agents(begin, 2)
    initiative = add_initiative(begin, quality_review=True)
    add_tasks(begin, Task(name="x", initiative_id=initiative.id))
    claim = claim_for(begin, worker)
    return worker, reviewer, do(begin, claims.complete, claim.task.id, claim.fence, "Done")


def test_completing_leads_to_a_review_where_the_initiative_wants_one(begin: Begin) -> None:
    """The task is not finished, keeps its assignee and summary, and is open for a reviewer."""
    worker, _, task = _under_review(begin)
    assert (task.status, task.assignee_id, task.summary) == (QUALITY_REVIEW, worker, "Done")
    with begin(write=False) as uow:
        opening = uow.openings.get(task.id)
    assert (opening.kind, opening.state) == (OpeningKind.REVIEW, OpeningState.READY)
    assert opening.lease_until is None
    assert ready_ids(begin) == [task.id]


@for_each("category", [each for each in TaskCategory if each != "execute"])
def test_only_tasks_that_execute_are_reviewed(begin: Begin, category: TaskCategory) -> None:
    """Any other category is completed at once."""
    (agent,) = add_agents(begin)
    initiative = add_initiative(begin, quality_review=True)
    add_tasks(begin, Task(name="x", initiative_id=initiative.id, category=category))
    claim = claim_for(begin, agent)
    assert do(begin, claims.complete, claim.task.id, claim.fence).status is COMPLETED


def test_nobody_reviews_their_own_work(begin: Begin) -> None:
    """The assignee gets the next task instead, or none; anybody else gets the review."""
    worker, reviewer, task = _under_review(begin)
    (other,) = add_tasks(begin, Task(name="x", order=1))
    assert claim_for(begin, worker).task.id == other.id
    assert claim_for(begin, worker) is None
    claim = claim_for(begin, reviewer)
    assert (task.claim_stamp, task.lease_until) == (None, None)
    assert claim.task == evolve(
        task,
        fence=task.fence + 1,
        claim_stamp=claim.task.claim_stamp,
        lease_until=claim.opening.lease_until,
        updated_at=claim.task.updated_at,
        version=task.version + 1,
    )
    assert claim.task.claim_stamp is not None
    assert (claim.task.assignee_id, claim.opening.kind) == (worker, OpeningKind.REVIEW)
    assert claim_for(begin, reviewer) is None


def test_own_work_under_review_does_not_hide_what_comes_behind_it(begin: Begin) -> None:
    """However many reviews an agent may not do, it finds the task it may."""
    (worker,) = add_agents(begin)
    many = claims.CANDIDATES * 2
    with begin() as uow:
        under_review = {"status": QUALITY_REVIEW, "assignee_id": worker}
        uow.tasks.add_all([Task(name="x", **under_review) for _ in range(many)])
        task = make(uow, TASKS, order=1)
        uow.commit()
    assert claim_for(begin, worker).task.id == task.id
    assert claim_for(begin, worker) is None


def test_a_review_that_passes_completes_the_task(begin: Begin) -> None:
    """With the worker's summary, unless the reviewer gives another."""
    worker, reviewer, task = _under_review(begin)
    claim = claim_for(begin, reviewer)
    done = do(begin, claims.complete, task.id, claim.fence)
    assert (done.status, done.summary, done.assignee_id) == (COMPLETED, "Done", worker)
    with begin(write=False) as uow:
        assert uow.openings.find(task.id) is None


def test_a_review_that_does_not_pass_sends_the_task_back(begin: Begin) -> None:
    """That is a retry, in nobody's hands, and work again."""
    worker, reviewer, task = _under_review(begin)
    claim = claim_for(begin, reviewer)
    back = do(begin, claims.fail, task.id, claim.fence)
    assert (back.status, back.retry_count, back.assignee_id) == (PENDING, 1, None)
    again = claim_for(begin, worker)
    assert (again.task.id, again.opening.kind) == (task.id, OpeningKind.WORK)


def test_a_task_sent_back_too_often_is_blocked(begin: Begin) -> None:
    """A review counts as a try like any other."""
    _, reviewer, task = _under_review(begin)
    claim = claim_for(begin, reviewer)
    assert do(begin, claims.fail, task.id, claim.fence, max_retries=0).status is BLOCKED


@every_write
def test_the_worker_cannot_pass_its_own_review(begin: Begin, write: Callable[..., object]) -> None:
    """Handing in lets go of the task: the fence it had is no longer good."""
    _, _, task = _under_review(begin)
    first = 1
    with begin() as uow, pytest.raises(StaleFence) as refusal:
        write(uow, task.id, first)
    assert (refusal.value.fence, refusal.value.current) == (first, task.fence)


def test_a_released_review_is_open_again_and_its_fence_is_not(begin: Begin) -> None:
    """The task stays under review, and the reviewer that let go can pass nothing."""
    _, reviewer, task = _under_review(begin)
    claim = claim_for(begin, reviewer)
    released = do(begin, claims.release, task.id, claim.fence)
    assert (released.status, released.retry_count) == (QUALITY_REVIEW, 0)
    with begin() as uow, pytest.raises(StaleFence):
        claims.complete(uow, task.id, claim.fence)
    again = claim_for(begin, reviewer)
    assert (again.task.id, again.fence) == (task.id, claim.fence + 2)


def test_an_expired_review_may_be_taken_over_by_anybody_but_the_assignee(begin: Begin) -> None:
    """It stays a review, with a fence of its own."""
    worker, reviewer, task = _under_review(begin)
    old = claim_for(begin, reviewer, ttl=BLINK)
    assert claim_for(begin, worker) is None
    new = claim_for(begin, reviewer)
    assert (new.task.status, new.opening.kind) == (QUALITY_REVIEW, OpeningKind.REVIEW)
    assert new.fence == old.fence + 1
    with begin() as uow, pytest.raises(StaleFence):
        claims.complete(uow, task.id, old.fence)


def test_the_first_claim_in_a_phase_begins_it(begin: Begin) -> None:
    """The second one does not write it again."""
    (agent,) = add_agents(begin)
    phase = add_phase(begin, add_initiative(begin), PhaseStatus.APPROVED)
    add_tasks(begin, *(Task(name="x", phase_id=phase.id) for _ in range(2)))
    for _ in range(2):
        assert claim_for(begin, agent) is not None
        begun = get_phase(begin, phase)
        assert (begun.status, begun.version) == (PhaseStatus.IN_PROGRESS, 2)


@pytest.mark.parametrize(
    ("mode", "status"),
    [
        (ExecutionMode.REVIEW_PER_PHASE, PhaseStatus.PENDING_REVIEW),
        (ExecutionMode.YOLO, PhaseStatus.COMPLETED),
    ],
)
def test_the_last_completion_in_a_phase_ends_it(
    begin: Begin, mode: ExecutionMode, status: PhaseStatus
) -> None:
    """The one before the last does not; in an initiative that runs yolo no review follows."""
    (agent,) = add_agents(begin)
    phase = add_phase(begin, add_initiative(begin, execution_mode=mode), PhaseStatus.APPROVED)
    add_tasks(begin, *(Task(name="x", phase_id=phase.id) for _ in range(2)))
    for expected in (PhaseStatus.IN_PROGRESS, status):
        claim = claim_for(begin, agent)
        do(begin, claims.complete, claim.task.id, claim.fence)
        assert get_phase(begin, phase).status is expected


def test_a_phase_does_not_end_before_its_last_review(begin: Begin) -> None:
    """A task under review is not finished."""
    worker, reviewer = add_agents(begin, 2)
    phase = add_phase(begin, add_initiative(begin, quality_review=True), PhaseStatus.APPROVED)
    add_tasks(begin, Task(name="x", phase_id=phase.id))
    for agent, status in [
        (worker, PhaseStatus.IN_PROGRESS),
        (reviewer, PhaseStatus.PENDING_REVIEW),
    ]:
        claim = claim_for(begin, agent)
        do(begin, claims.complete, claim.task.id, claim.fence)
        assert get_phase(begin, phase).status is status


def test_a_phase_that_ends_lets_the_next_one_begin(begin: Begin) -> None:
    """Without a review in between where the initiative runs yolo."""
    (agent,) = add_agents(begin)
    initiative = add_initiative(begin, execution_mode=ExecutionMode.YOLO)
    first, second = (add_phase(begin, initiative, PhaseStatus.PENDING) for _ in range(2))
    with begin() as uow:
        uow.phases.add_dependency(second.id, first.id)
        early, late = (make(uow, TASKS, phase_id=each.id) for each in (first, second))
        uow.commit()
    assert ready_ids(begin) == [early.id]
    claim = claim_for(begin, agent)
    assert ready_ids(begin) == []
    do(begin, claims.complete, claim.task.id, claim.fence)
    assert ready_ids(begin) == [late.id]


def test_a_held_task_whose_phase_closes_is_finished_but_not_taken_over(begin: Begin) -> None:
    """Its holder goes on; when the lease runs out nobody else begins, until the phase opens."""
    (agent,) = add_agents(begin)
    phase = add_phase(begin, add_initiative(begin), PhaseStatus.APPROVED)
    add_tasks(begin, *(Task(name="x", phase_id=phase.id, order=n) for n in range(2)))
    held, expired = claim_for(begin, agent), claim_for(begin, agent, ttl=BLINK)
    with begin() as uow:
        uow.phases.save(evolve(uow.phases.get(phase.id), status=PhaseStatus.BLOCKED))
        uow.commit()
    assert (ready_ids(begin), claim_for(begin, agent)) == ([], None)
    do(begin, claims.heartbeat, held.task.id, held.fence)
    assert do(begin, claims.complete, held.task.id, held.fence).status is COMPLETED
    with begin() as uow:
        uow.phases.save(evolve(uow.phases.get(phase.id), status=PhaseStatus.IN_PROGRESS))
        uow.commit()
    assert ready_ids(begin) == [expired.task.id]
