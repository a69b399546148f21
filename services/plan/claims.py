"""Claim a task, renew its lease, complete, fail or release it."""

from datetime import timedelta

from herdbook.domain.plan import claims as rules
from herdbook.domain.plan.claims import LEASE, MAX_RETRIES, Claim
from herdbook.domain.plan.model import Initiative, Task
from herdbook.domain.plan.readiness import Opening, OpeningKind, OpeningState
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork

CANDIDATES = 10


def ready(
    uow: UnitOfWork,
    limit: int = 20,
    *,
    initiative_id: str | None = None,
    phase_id: str | None = None,
) -> list[Task]:
    """The tasks that can be claimed now, most urgent first."""
    return uow.tasks.ready(limit, initiative_id=initiative_id, phase_id=phase_id)


def claim(
    uow: UnitOfWork,
    agent_id: str,
    *,
    initiative_id: str | None = None,
    phase_id: str | None = None,
    ttl: timedelta = LEASE,
    max_retries: int = MAX_RETRIES,
) -> Claim | None:
    """Claim the most urgent ready task for an agent, with a lease of `ttl`.

    Returns None if there is no task for it. A task whose lease expired too often is set to blocked
    instead of being claimed once more.
    """
    agent = uow.agents.get(agent_id)
    limit = CANDIDATES
    while True:
        openings = uow.openings.claimable(limit, initiative_id=initiative_id, phase_id=phase_id)
        tasks = uow.tasks.get_many(opening.task_id for opening in openings)
        for opening, task in zip(openings, tasks, strict=True):
            if not rules.may_take(opening, task, agent.id):
                continue
            expired = opening.state is OpeningState.HELD
            if expired and task.retry_count >= max_retries and opening.kind is OpeningKind.WORK:
                uow.tasks.save(rules.fail(task, max_retries))
                continue
            return _give(uow, opening, task, agent.id, ttl)
        if len(openings) < limit:
            return None
        limit *= 4


def _give(uow: UnitOfWork, opening: Opening, task: Task, agent_id: str, ttl: timedelta) -> Claim:
    held = rules.extend_lease(opening, uow.now, ttl)
    uow.openings.put(held)
    claimed = uow.tasks.save(rules.claim(task, opening, agent_id))
    built_on = {each.id: each.summary for each in uow.tasks.dependencies(task.id)}
    return Claim(claimed, held, built_on)


def heartbeat(uow: UnitOfWork, task_id: str, fence: int, *, ttl: timedelta = LEASE) -> Opening:
    """Renew the lease of a claimed task; the task itself is not written."""
    rules.check_fence(uow.tasks.get(task_id), fence)
    held = rules.extend_lease(uow.openings.get(task_id), uow.now, ttl)
    uow.openings.put(held)
    return held


def complete(uow: UnitOfWork, task_id: str, fence: int, summary: str | None = None) -> Task:
    """Complete a claimed task, or approve a reviewed one."""
    task = uow.tasks.get(task_id)
    rules.check_fence(task, fence)
    return uow.tasks.save(rules.complete(task, summary, _initiative(uow, task)))


def fail(uow: UnitOfWork, task_id: str, fence: int, *, max_retries: int = MAX_RETRIES) -> Task:
    """Give a claimed task back as failed, or reject a reviewed one.

    It becomes ready again, or blocked if it failed too often.
    """
    task = uow.tasks.get(task_id)
    rules.check_fence(task, fence)
    return uow.tasks.save(rules.fail(task, max_retries))


def release(uow: UnitOfWork, task_id: str, fence: int) -> Task:
    """Give a claimed task back without counting a retry."""
    task = uow.tasks.get(task_id)
    rules.check_fence(task, fence)
    uow.openings.put(rules.end_lease(uow.openings.get(task_id)))
    return uow.tasks.save(rules.release(task))


def retry(uow: UnitOfWork, task_id: str) -> Task:
    """Make a blocked task ready again, with no retries counted."""
    return uow.tasks.save(rules.retry(uow.tasks.get(task_id)))


def _initiative(uow: UnitOfWork, task: Task) -> Initiative | None:
    owner = task.initiative_id
    if task.phase_id is not None:
        owner = uow.phases.get(task.phase_id).initiative_id
    return None if owner is None else uow.initiatives.get(owner)
