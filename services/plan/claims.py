"""Claim a task, renew its lease, complete, fail or release it."""

from datetime import timedelta

from herdbook.domain.errors import InvalidValue, NotFound, StaleFence
from herdbook.domain.plan import claims as rules
from herdbook.domain.plan.claims import LEASE, MAX_RETRIES, Claim
from herdbook.domain.plan.model import Initiative, Task, TaskStatus
from herdbook.domain.plan.readiness import Opening, OpeningKind, OpeningState
from herdbook.ports.engine.dictionary import AGENTS
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.ports.world.halts import Halts

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
    halts: Halts,
    initiative_id: str | None = None,
    phase_id: str | None = None,
    ttl: timedelta = LEASE,
    max_retries: int = MAX_RETRIES,
) -> Claim | None:
    """Claim the most urgent ready task for an agent, with a lease of `ttl`.

    None if there is nothing to do for it. A task that was taken over too often is blocked on the
    way instead of being given out once more. Raises AgentHalted for an agent that `halts` knows to
    be halted; if they cannot be read, it may continue, and the journal says so.
    """
    from herdbook.services.agents.halts import refuse_halted  # noqa: PLC0415 - `ready` needs none

    agent = uow.agents.get(agent_id)
    refuse_halted(uow, halts, agent.name)
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
    held = rules.hold(opening, agent_id, uow.now, ttl)
    uow.openings.put(held)
    claimed = uow.tasks.save(rules.claim(task, opening, agent_id))
    built_on = {each.id: each.summary for each in uow.tasks.dependencies(task.id)}
    return Claim(claimed, held, built_on)


def heartbeat(uow: UnitOfWork, task_id: str, fence: int, *, ttl: timedelta = LEASE) -> Opening:
    """Renew the lease of a claimed task; the task itself is not written."""
    _claimed_task(uow, task_id, fence)
    held = rules.extend_lease(uow.openings.get(task_id), uow.now, ttl)
    uow.openings.put(held)
    return held


def complete(uow: UnitOfWork, task_id: str, fence: int, summary: str | None = None) -> Task:
    """Complete a claimed task, or approve a reviewed one."""
    task = _claimed_task(uow, task_id, fence)
    return uow.tasks.save(rules.complete(task, summary, _initiative(uow, task)))


def fail(uow: UnitOfWork, task_id: str, fence: int, *, max_retries: int = MAX_RETRIES) -> Task:
    """Give a claimed task back as failed, or reject a reviewed one.

    It becomes ready again, or blocked if it failed too often.
    """
    task = _claimed_task(uow, task_id, fence)
    return uow.tasks.save(rules.fail(task, max_retries))


def release(uow: UnitOfWork, task_id: str, fence: int) -> Task:
    """Give a claimed task back without counting a retry."""
    task = _claimed_task(uow, task_id, fence)
    uow.openings.put(rules.end_lease(uow.openings.get(task_id)))
    return uow.tasks.save(rules.release(task))


def retry(uow: UnitOfWork, task_id: str) -> Task:
    """Make a blocked task ready again, with no retries counted."""
    return uow.tasks.save(rules.retry(uow.tasks.get(task_id)))


def own_task(uow: UnitOfWork, agent_id: str) -> Task:
    """The only task that an agent works on.

    Raises NotFound if it works on none, and InvalidValue, which names them, if on several.
    """
    held = uow.tasks.in_progress_of([agent_id])
    if not held:
        name = uow.agents.get(agent_id).name
        raise NotFound("task", "", f"{name} holds no task; `herdbook claim` takes one")
    if len(held) > 1:
        ids = ", ".join(task.id for task in held)
        raise InvalidValue("task", f"must be named: the agent that acts holds {ids}")
    return held[0]


def own_fence(uow: UnitOfWork, task_id: str, agent_id: str | None) -> int:
    """The fence of a task for the agent that holds it.

    Raises InvalidValue for anybody else. A reviewer has to give the fence too: a task under review
    stays assigned to the agent that did the work.
    """
    task = uow.tasks.get(task_id)
    if agent_id is not None and task.assignee_id == agent_id:
        return task.fence
    reason = "must be given, as `claim` printed it: the acting agent does not hold this task"
    holder = _holder(uow, task)
    if agent_id is not None and holder is not None:
        reason = (
            f"this task is now held by {holder}. Stop working on it, unless `claim` gave you a "
            "fence for it"
        )
    raise InvalidValue("fence", reason)


def _claimed_task(uow: UnitOfWork, task_id: str, fence: int) -> Task:
    """A task, for a write under its current claim; raises StaleFence, with who holds it, else."""
    task = uow.tasks.get(task_id)
    try:
        rules.check_fence(task, fence)
    except StaleFence as error:
        raise StaleFence(task.id, fence, task.fence, _holder(uow, task)) from error
    return task


def _holder(uow: UnitOfWork, task: Task) -> str | None:
    """The name of the agent that works on a task; None if nobody does."""
    if task.assignee_id is None or task.status is not TaskStatus.IN_PROGRESS:
        return None
    (agent,) = uow.get(AGENTS, [task.assignee_id])
    return None if agent is None else agent.name


def _initiative(uow: UnitOfWork, task: Task) -> Initiative | None:
    owner = task.initiative_id
    if task.phase_id is not None:
        owner = uow.phases.get(task.phase_id).initiative_id
    return None if owner is None else uow.initiatives.get(owner)
