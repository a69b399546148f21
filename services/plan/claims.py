"""Claim a task, renew its lease, complete, fail or release it."""

from datetime import timedelta

from herdbook.domain.errors import InvalidValue, NotFound, StaleFence, TaskNotClaimable
from herdbook.domain.journal import Cause
from herdbook.domain.plan import claims as rules
from herdbook.domain.plan.claims import LEASE, MAX_RETRIES, Claim, Fence
from herdbook.domain.plan.model import Initiative, Task
from herdbook.domain.plan.readiness import Opening, OpeningKind, OpeningState, holder_of
from herdbook.ports.engine.dictionary import AGENTS, OPENINGS, TASKS
from herdbook.ports.engine.query import find
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.ports.world.activity import NO_ACTIVITY, AgentActivity
from herdbook.ports.world.halts import Halts
from herdbook.services.listing import Listing

CANDIDATES = 10


def ready(
    uow: UnitOfWork,
    limit: int = 20,
    *,
    initiative_id: str | None = None,
    phase_id: str | None = None,
) -> list[Task]:
    """The tasks that can be claimed now, most urgent first; if there is none, why."""
    tasks = uow.tasks.ready(limit, initiative_id=initiative_id, phase_id=phase_id)
    if tasks and len(tasks) < limit:
        return Listing(tasks, len(tasks))
    if tasks:
        within = {"phase_id": phase_id} if phase_id else {"initiative_id": initiative_id}
        where = {name: value for name, value in within.items() if value is not None}
        total = uow.count(find(OPENINGS, {**where, "state": OpeningState.READY}))
        return Listing(tasks, max(total, len(tasks)))
    from herdbook.services.plan.wait_reasons import describe_wait  # noqa: PLC0415

    return Listing([], 0, note=describe_wait(uow, initiative_id=initiative_id, phase_id=phase_id))


def claim(
    uow: UnitOfWork,
    agent_id: str,
    *,
    halts: Halts,
    initiative_id: str | None = None,
    phase_id: str | None = None,
    task_id: str | None = None,
    ttl: timedelta = LEASE,
    max_retries: int = MAX_RETRIES,
    activity: AgentActivity = NO_ACTIVITY,
) -> Claim | None:
    """Claim the named task, or the most urgent ready one, for an agent, with a lease of `ttl`.

    None if there is nothing to do for it. An expired lease is renewed instead of taken over if
    `activity` has seen its holder since. A task that was taken over too often is blocked on the
    way instead of being given out once more. Raises AgentHalted for an agent that `halts` knows to
    be halted; if they cannot be read, it may continue, and the journal says so. Raises
    TaskNotClaimable, with the reason, for a named task that is not to be had.
    """
    from herdbook.services.agents.halts import refuse_halted  # noqa: PLC0415 - `ready` needs none

    agent = uow.agents.get(agent_id)
    refuse_halted(uow, halts, agent.name)
    if task_id is not None:
        named = uow.tasks.get(task_id)
        opening = uow.openings.find(task_id)
        if opening is not None and rules.lease_is_over(opening, uow.now):
            _is_alive(uow, named, opening, agent.id, activity)
        return _claim_named(uow, named, agent.id, ttl, max_retries)
    limit = CANDIDATES
    while True:
        openings = uow.openings.claimable(limit, initiative_id=initiative_id, phase_id=phase_id)
        tasks = uow.tasks.get_many(opening.task_id for opening in openings)
        for opening, task in zip(openings, tasks, strict=True):
            if not rules.may_take(opening, task, agent.id):
                continue
            expired = opening.state is OpeningState.HELD
            if expired and _is_alive(uow, task, opening, agent.id, activity):
                continue
            if expired and task.retry_count >= max_retries and opening.kind is OpeningKind.WORK:
                uow.tasks.save(rules.fail(task, max_retries))
                continue
            return _give(uow, opening, task, agent.id, ttl)
        if len(openings) < limit:
            return None
        limit *= 4


def _claim_named(
    uow: UnitOfWork, task: Task, agent_id: str, ttl: timedelta, max_retries: int
) -> Claim:
    """Claim one task; the agent that holds it already gets its claim again, with a longer lease."""
    opening = uow.openings.find(task.id)
    if opening is None:
        from herdbook.services.plan.wait_reasons import describe_task  # noqa: PLC0415

        raise TaskNotClaimable(task.id, task.name, describe_task(uow, task))
    held = opening.state is OpeningState.HELD and not rules.lease_is_over(opening, uow.now)
    holder = holder_of(task, opening)
    if held and holder == agent_id:
        longer = rules.extend_lease(opening, uow.now, ttl)
        uow.openings.put(longer)
        return _held_claim(uow, longer, task)
    reason = None
    if held:
        agent = uow.agents.find_holder(task, opening)
        name = "somebody" if agent is None else agent.name
        until = f"{opening.lease_until:%Y-%m-%d %H:%M} UTC" if opening.lease_until else "it is done"
        reason = f"{name} holds it until {until}"
    elif opening.blockers:
        reason = "its lease has ended, and something it waits for has come since"
    elif not rules.may_take(opening, task, agent_id):
        reason = "it is under review, and nobody reviews their own work"
    elif opening.state is OpeningState.HELD and task.retry_count >= max_retries:
        reason = "it was given up too often; a person can allow it with `herdbook task retry`"
    if reason is not None:
        raise TaskNotClaimable(task.id, task.name, reason)
    return _give(uow, opening, task, agent_id, ttl)


def _held_claim(uow: UnitOfWork, held: Opening, task: Task) -> Claim:
    built_on = {each.id: each.summary for each in uow.tasks.dependencies(task.id)}
    return Claim(task, held, built_on)


def _is_alive(
    uow: UnitOfWork, task: Task, opening: Opening, agent_id: str, activity: AgentActivity
) -> bool:
    """Whether the holder of an expired lease was seen since; then its lease is renewed."""
    from herdbook.services.plan import lease_renewal  # noqa: PLC0415 - for expired leases only

    if holder_of(task, opening) == agent_id:
        return False
    return lease_renewal.extend_by_activity(uow, task, opening, activity) is not None


def _give(uow: UnitOfWork, opening: Opening, task: Task, agent_id: str, ttl: timedelta) -> Claim:
    held = rules.hold(opening, agent_id, uow.now, ttl)
    uow.openings.put(held)
    stamped = rules.claim(task, opening, agent_id, stamp=uow.stamp, lease_until=held.lease_until)
    claimed = _held_claim(uow, held, uow.tasks.save(stamped))
    expired = opening.state is OpeningState.HELD
    return claimed._replace(taken_from=holder_of(task, opening) if expired else None)


def heartbeat(uow: UnitOfWork, task_id: str, fence: Fence, *, ttl: timedelta = LEASE) -> Opening:
    """Renew the lease of a claimed task; the task itself is not written."""
    _claimed_task(uow, task_id, fence)
    held = rules.extend_lease(uow.openings.get(task_id), uow.now, ttl)
    uow.openings.put(held)
    return held


def complete(uow: UnitOfWork, task_id: str, fence: Fence, summary: str | None = None) -> Task:
    """Complete a claimed task, or approve a reviewed one."""
    task = _claimed_task(uow, task_id, fence)
    return uow.tasks.save(rules.complete(task, summary, _initiative(uow, task)))


def fail(uow: UnitOfWork, task_id: str, fence: Fence, *, max_retries: int = MAX_RETRIES) -> Task:
    """Give a claimed task back as failed, or reject a reviewed one.

    It becomes ready again, or blocked if it failed too often.
    """
    task = _claimed_task(uow, task_id, fence)
    return uow.tasks.save(rules.fail(task, max_retries))


def release(uow: UnitOfWork, task_id: str, fence: Fence) -> Task:
    """Give a claimed task back without counting a retry."""
    task = _claimed_task(uow, task_id, fence)
    uow.openings.put(rules.end_lease(uow.openings.get(task_id)))
    return uow.tasks.save(rules.release(task))


def retry(uow: UnitOfWork, task_id: str) -> Task:
    """Make a blocked task ready again, with no retries counted."""
    return uow.tasks.save(rules.retry(uow.tasks.get(task_id)))


def own_task(uow: UnitOfWork, agent_id: str) -> Task:
    """The only task that an agent works on.

    Raises StaleFence if somebody else ended its last claim, NotFound if it works on none for
    another reason, and InvalidValue, which names them, if on several.
    """
    held = uow.tasks.in_progress_of([agent_id])
    if not held:
        lost = _lost_task(uow, agent_id)
        if lost is not None:
            raise _stale_fence(uow, lost, None)
        name = uow.agents.get(agent_id).name
        raise NotFound("task", "", f"{name} holds no task; `herdbook claim` takes one")
    if len(held) > 1:
        names = ", ".join(f"{task.name!r} ({task.id})" for task in held)
        reason = f"must be named: {uow.agents.get(agent_id).name} holds {len(held)} tasks: {names}"
        raise InvalidValue("task", reason)
    return held[0]


def own_fence(uow: UnitOfWork, task_id: str, agent_id: str | None) -> Fence:
    """The claim of a task for the agent that holds it or its review.

    Raises StaleFence for an agent if another one holds it, or if somebody else ended its claim, and
    InvalidValue for everybody else.
    """
    task = uow.tasks.get(task_id)
    holder = holder_of(task, uow.openings.find(task_id))
    if agent_id is not None and agent_id == (task.assignee_id if task.is_finished else holder):
        return task.claim_stamp or task.fence
    if agent_id is not None and (holder is not None or _lost_task(uow, agent_id) == task):
        raise _stale_fence(uow, task, None)
    reason = "must be given, as `claim` printed it: the acting agent does not hold this task"
    raise InvalidValue("fence", reason)


def _lost_task(uow: UnitOfWork, agent_id: str) -> Task | None:
    """The task that an agent was at last, if somebody else took it away from the agent."""
    name = uow.agents.get(agent_id).name
    for entry in reversed(uow.journal.of_row(AGENTS, agent_id)):
        before, after = entry.before or {}, entry.after or {}
        if "task_id" in before or "task_id" in after:
            lost = before.get("task_id")
            is_own = entry.agent == name or after.get("task_id") is not None
            return None if is_own or lost is None else uow.tasks.find(lost)
    return None


def _claimed_task(uow: UnitOfWork, task_id: str, fence: Fence) -> Task:
    """A task, for a write under its current claim; raises StaleFence, with who holds it, else."""
    task = uow.tasks.get(task_id)
    number = fence if isinstance(fence, int) else None
    try:
        rules.check_fence(task, fence)
    except StaleFence as error:
        raise _stale_fence(uow, task, number) from error
    if number is not None and _is_another_claim(uow, task, number):
        raise _stale_fence(uow, task, number)
    return task


def _is_another_claim(uow: UnitOfWork, task: Task, number: int) -> bool:
    """Whether this store gave the number to another claim than the current one.

    Replicas count claims on their own. After a row of another one has come here, the number may be
    the same and the claim another.
    """
    if task.claim_stamp is None or task.claim_stamp.node == uow.node:
        return False
    for entry in reversed(uow.journal.of_row(TASKS, task.id)):
        after = entry.after or {}
        is_local = entry.origin is None and entry.cause is not Cause.MERGE
        if is_local and after.get("fence") == number and "claim_stamp" in after:
            return bool(after["claim_stamp"] != str(task.claim_stamp))
    return False


def _stale_fence(uow: UnitOfWork, task: Task, fence: int | None) -> StaleFence:
    """The error of a claim that has ended: who holds the task now, and since when."""
    holder = uow.agents.find_holder(task, uow.openings.find(task.id))
    if holder is None:
        return StaleFence(task.id, fence, task.fence)
    since = task.updated_at if task.claim_stamp is None else task.claim_stamp.wall
    return StaleFence(task.id, fence, task.fence, holder.name, since)


def _initiative(uow: UnitOfWork, task: Task) -> Initiative | None:
    owner = uow.tasks.initiative_id_of(task)
    return None if owner is None else uow.initiatives.get(owner)
