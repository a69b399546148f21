"""Renewing the leases of agents that are alive: by their servers, and by what their hooks report.

A renewal changes the opening of a task and never the journal.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

from herdbook.domain.agents.model import ACTIVE_STATUSES
from herdbook.domain.entity import evolve
from herdbook.domain.plan.claims import LEASE, SERVER_LEASE, expire_lease
from herdbook.domain.plan.model import Task
from herdbook.domain.plan.readiness import Opening, OpeningState
from herdbook.ports.engine.dictionary import OPENINGS
from herdbook.ports.engine.query import find
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.ports.world.activity import AgentActivity
from herdbook.services.plan.claims import heartbeat, own_fence


def held_openings(uow: UnitOfWork, agent_id: str) -> list[Opening]:
    """What an agent holds: the tasks it works on, and those it reviews."""
    tasks = uow.tasks.in_progress_of([agent_id])
    work = uow.openings.get_many(task.id for task in tasks)
    return [*work, *uow.openings.reviews_of([agent_id])]


def needs_renewal(uow: UnitOfWork, agent_id: str, ttl: timedelta = SERVER_LEASE) -> bool:
    """Whether a lease of an agent that is at work ends before `ttl` is over."""
    if uow.agents.get(agent_id).status not in ACTIVE_STATUSES:
        return False
    return any(_ends_before(each, uow.now + ttl) for each in held_openings(uow, agent_id))


def renew_held(uow: UnitOfWork, agent_id: str, ttl: timedelta = SERVER_LEASE) -> list[Opening]:
    """Renew the leases of all that an agent holds; nothing for an agent that has ended."""
    if uow.agents.get(agent_id).status not in ACTIVE_STATUSES:
        return []
    return [
        heartbeat(uow, each.task_id, own_fence(uow, each.task_id, agent_id), ttl=ttl)
        for each in held_openings(uow, agent_id)
        if _ends_before(each, uow.now + ttl)
    ]


def extend_by_activity(
    uow: UnitOfWork, task: Task, opening: Opening, activity: AgentActivity
) -> Opening | None:
    """The opening under a lease up to its claim's duration after its holder was last seen.

    It is stored. None, and nothing is changed, if the holder is not known, has ended, or has been
    silent for longer than that.
    """
    holder = uow.agents.find_holder(task, opening)
    if holder is None or holder.status not in ACTIVE_STATUSES:
        return None
    seen = activity.last_seen(holder)
    until = None if seen is None else min(seen, uow.now) + claimed_for(task)
    if until is None or until <= max(uow.now, opening.lease_until or uow.now):
        return None
    extended = evolve(opening, lease_until=until)
    uow.openings.put(extended)
    return extended


def renew_seen(uow: UnitOfWork, activity: AgentActivity) -> list[Opening]:
    """Extend all leases of the space whose holders were seen since they were claimed or renewed."""
    held = uow.openings.select(find(OPENINGS, {"state": OpeningState.HELD}))
    tasks = uow.tasks.get_many(each.task_id for each in held)
    found = [
        extend_by_activity(uow, task, each, activity)
        for task, each in zip(tasks, held, strict=True)
    ]
    return [each for each in found if each is not None]


def end_leases(uow: UnitOfWork, sessions: Iterable[str]) -> list[Opening]:
    """End the leases of the agents of sessions that are gone; to take them over counts a retry."""
    ended = []
    for agent in [each for session in sessions for each in uow.agents.by_session(session)]:
        for opening in held_openings(uow, agent.id):
            if _ends_before(opening, uow.now):
                continue
            ended.append(evolve(expire_lease(opening, uow.now), reviewer_id=opening.reviewer_id))
            uow.openings.put(ended[-1])
    return ended


def claimed_for(task: Task) -> timedelta:
    """The duration of the lease that a task was claimed with; the usual one if it is not known."""
    if task.claim_stamp is None or task.lease_until is None:
        return LEASE
    return max(task.lease_until - task.claim_stamp.wall, timedelta(0))


def _ends_before(opening: Opening, moment: datetime) -> bool:
    return opening.lease_until is not None and opening.lease_until < moment
