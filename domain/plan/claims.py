"""Claims on tasks: leases, fences, retries and reviews."""

from datetime import datetime, timedelta
from types import MappingProxyType
from typing import NamedTuple

from herdbook.domain.clock import Stamp
from herdbook.domain.entity import evolve
from herdbook.domain.errors import InvalidValue, StaleFence
from herdbook.domain.plan.model import (
    Initiative,
    Task,
    TaskCategory,
    TaskStatus,
)
from herdbook.domain.plan.readiness import Opening, OpeningKind, OpeningState

MAX_RETRIES = 3
LEASE = timedelta(minutes=30)
"""How long a claim lasts without a sign of life of its agent."""
SERVER_LEASE = timedelta(minutes=5)
"""How long a claim lasts that a server renews for as long as its client is there."""
HELD = (TaskStatus.IN_PROGRESS, TaskStatus.QUALITY_REVIEW)
"""The statuses in which somebody may hold a task."""
_UNCLAIMED = MappingProxyType({"claim_stamp": None, "lease_until": None})
"""What a task no longer has once its claim is over."""


Fence = int | Stamp
"""What identifies a claim: its stamp, among all replicas, or its number in this store."""


class Claim(NamedTuple):
    """A claimed task: the task as it is now, its lease, and the summaries of what it builds on.

    `taken_from` is the agent whose lease had expired, if it was taken over.
    """

    task: Task
    opening: Opening
    summaries: dict[str, str | None]
    taken_from: str | None = None

    @property
    def fence(self) -> int:
        """The number to present with every write that a person or an agent makes under it."""
        return self.task.fence

    @property
    def stamp(self) -> Stamp | None:
        """What a program presents with every write: the same number may be another claim's."""
        return self.task.claim_stamp


def lease_is_over(opening: Opening, now: datetime) -> bool:
    """Whether the lease of a held task has expired, so that it may be taken over."""
    return (
        opening.state is OpeningState.HELD
        and opening.lease_until is not None
        and opening.lease_until <= now
    )


def may_take(opening: Opening, task: Task, agent_id: str) -> bool:
    """Whether this agent may claim it: nobody reviews their own work."""
    return opening.kind is OpeningKind.WORK or task.assignee_id != agent_id


def extend_lease(opening: Opening, now: datetime, ttl: timedelta) -> Opening:
    """The opening under a new or a longer lease; a lease is never shortened.

    Raises InvalidValue for a duration that is not positive or ends after the year 9999.
    """
    if ttl <= timedelta(0):
        raise InvalidValue("ttl", f"must be greater than 0, is {ttl}")
    try:
        until = now + ttl
    except OverflowError as error:
        raise InvalidValue("ttl", f"{ttl} would end after the year 9999") from error
    if opening.lease_until is not None:
        until = max(until, opening.lease_until)
    return evolve(opening, state=OpeningState.HELD, lease_until=until)


def hold(opening: Opening, agent_id: str, now: datetime, ttl: timedelta) -> Opening:
    """The opening after this agent claimed it; raises what `extend_lease` raises."""
    held = extend_lease(opening, now, ttl)
    reviewer_id = agent_id if opening.kind is OpeningKind.REVIEW else None
    return evolve(held, reviewer_id=reviewer_id)


def end_lease(opening: Opening) -> Opening:
    """The opening after its holder gave it up: anybody may claim it at once."""
    return evolve(opening, state=OpeningState.READY, lease_until=None, reviewer_id=None)


def expire_lease(opening: Opening, now: datetime) -> Opening:
    """The opening after its holder crashed: to take it over counts a retry, as always."""
    return evolve(opening, lease_until=now, reviewer_id=None)


def claim(
    task: Task, opening: Opening, agent_id: str, *, stamp: Stamp, lease_until: datetime | None
) -> Task:
    """The task after this agent claimed it; taking over an expired lease counts as a retry.

    `stamp` is the claim's own and `lease_until` the end of its lease. A reviewer holds the opening
    only: the task stays assigned to the agent that did the work.
    """
    expired = opening.state is OpeningState.HELD
    task = evolve(
        task,
        fence=task.fence + 1,
        claim_stamp=stamp,
        lease_until=lease_until,
        retry_count=task.retry_count + expired,
    )
    if opening.kind is OpeningKind.REVIEW:
        return task
    return evolve(task, status=TaskStatus.IN_PROGRESS, assignee_id=agent_id)


def check_fence(task: Task, fence: Fence) -> None:
    """Raise StaleFence for a write under a claim that is no longer the current one."""
    number = fence if isinstance(fence, int) else None
    current = task.claim_stamp if number is None else task.fence
    if fence != current or task.status not in HELD:
        raise StaleFence(task.id, number, task.fence)


def complete(task: Task, summary: str | None, initiative: Initiative | None) -> Task:
    """The task after its work is done, or after its review accepted it.

    Where a review follows, the fence increases: the agent that did the work no longer holds the
    task, and reporting completion a second time must not count as the review.
    """
    needs_review = (
        task.status is TaskStatus.IN_PROGRESS
        and task.category is TaskCategory.EXECUTE
        and initiative is not None
        and initiative.quality_review
    )
    return evolve(
        task,
        status=TaskStatus.QUALITY_REVIEW if needs_review else TaskStatus.COMPLETED,
        summary=task.summary if summary is None else summary,
        fence=task.fence + needs_review,
        **_UNCLAIMED,
    )


def fail(task: Task, max_retries: int = MAX_RETRIES) -> Task:
    """The task after an attempt failed or a review sent it back; after too many it is blocked."""
    retries = task.retry_count + 1
    status = TaskStatus.BLOCKED if retries > max_retries else TaskStatus.PENDING
    return evolve(task, status=status, retry_count=retries, assignee_id=None, **_UNCLAIMED)


def release(task: Task) -> Task:
    """The task after its holder gave it back without trying; call `end_lease` on its opening too.

    A review leaves no other trace in the task than its fence, which increases here.
    """
    if task.status is TaskStatus.QUALITY_REVIEW:
        return evolve(task, fence=task.fence + 1, **_UNCLAIMED)
    return evolve(task, status=TaskStatus.PENDING, assignee_id=None, **_UNCLAIMED)


def retry(task: Task) -> Task:
    """The task after a person allows it to be tried again from the start."""
    return evolve(task, status=TaskStatus.PENDING, retry_count=0, assignee_id=None, **_UNCLAIMED)
