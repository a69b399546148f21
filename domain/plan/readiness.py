"""When a task can be worked on, and the two projections that store the answer.

Every unfinished task has exactly one row in one of two queues: `WaitingTask` while something blocks
it, `Opening` once it can be claimed or while somebody holds it.
"""

from collections.abc import Collection, Iterable
from datetime import datetime
from enum import StrEnum

from herdbook.domain.entity import entity
from herdbook.domain.plan.model import (
    ExecutionMode,
    Initiative,
    InitiativeStatus,
    Phase,
    PhaseStatus,
    Task,
    TaskStatus,
)
from herdbook.domain.values import Count, Id


class OpeningKind(StrEnum):
    WORK = "work"
    REVIEW = "review"


class OpeningState(StrEnum):
    READY = "ready"
    HELD = "held"


@entity
class WaitingTask:
    """A blocked task, and how many things block it."""

    task_id: Id
    phase_id: Id | None = None
    blockers: Count


@entity
class Opening:
    """A task that can be claimed, or that is held under a lease.

    The holder of work is the assignee of its task. A task under review stays assigned to the agent
    that did the work, so `reviewer_id` says who holds the review.
    `blockers` is above zero only where a held task was blocked after its claim: its holder may
    finish it, but nobody takes it over when the lease expires.
    """

    task_id: Id
    initiative_id: Id | None = None
    phase_id: Id | None = None
    kind: OpeningKind = OpeningKind.WORK
    state: OpeningState = OpeningState.READY
    rank: Count
    order: int
    created_at: datetime
    lease_until: datetime | None = None
    blockers: Count = 0
    reviewer_id: Id | None = None


def phase_is_open(phase: Phase, initiative: Initiative | None) -> bool:
    """Whether work may start in a phase, by the state of the phase itself."""
    if phase.status in (PhaseStatus.APPROVED, PhaseStatus.IN_PROGRESS):
        return True
    yolo = initiative is not None and initiative.execution_mode is ExecutionMode.YOLO
    return phase.status is PhaseStatus.PENDING and yolo


def gate_is_open(
    initiative: Initiative | None, phase: Phase | None, phase_waits_for: Iterable[Phase] = ()
) -> bool:
    """Whether the initiative and the phase of a task allow work on it."""
    if initiative is not None and initiative.status is not InitiativeStatus.ACTIVE:
        return False
    if phase is None:
        return True
    return phase_is_open(phase, initiative) and all(
        each.status is PhaseStatus.COMPLETED for each in phase_waits_for
    )


def count_blockers(
    task: Task, *, gate_open: bool, depends_on: Iterable[Task], children: Iterable[Task]
) -> int:
    """How many things block a task."""
    return (
        sum(not each.is_finished for each in depends_on)
        + sum(not each.is_finished for each in children)
        + (not gate_open)
        + (task.status is TaskStatus.BLOCKED)
    )


def queue_row(
    task: Task, phase: Phase | None, blocked_by: int, before: WaitingTask | Opening | None
) -> WaitingTask | Opening | None:
    """The one queue row of an unfinished task; None for a finished one.

    Renewals and a reviewer are stored in the row only, so they are copied from the row that was
    there `before`. A held task whose row was lost counts as held for the lease of its claim, or, if
    it has none, until its last change: its holder can renew it with a heartbeat, and nobody waits
    for it forever.
    """
    if task.is_finished:
        return None
    held = task.status is TaskStatus.IN_PROGRESS or _review_is_held(task, before)
    if blocked_by and not held:
        return WaitingTask(task_id=task.id, phase_id=task.phase_id, blockers=blocked_by)
    lease_until = reviewer_id = None
    if held:
        lease_until = task.lease_until or task.updated_at
        if isinstance(before, Opening) and before.state is OpeningState.HELD:
            lease_until = before.lease_until
    review = task.status is TaskStatus.QUALITY_REVIEW
    if review and held and isinstance(before, Opening):
        reviewer_id = before.reviewer_id
    return Opening(
        task_id=task.id,
        initiative_id=phase.initiative_id if phase else task.initiative_id,
        phase_id=task.phase_id,
        kind=OpeningKind.REVIEW if review else OpeningKind.WORK,
        state=OpeningState.HELD if held else OpeningState.READY,
        rank=task.priority.rank,
        order=task.order,
        created_at=task.created_at,
        lease_until=lease_until,
        blockers=blocked_by,
        reviewer_id=reviewer_id,
    )


def _review_is_held(task: Task, before: WaitingTask | Opening | None) -> bool:
    """Whether somebody holds the review of a task, by its row before or, if lost, by its claim."""
    if task.status is not TaskStatus.QUALITY_REVIEW:
        return False
    if before is None:
        return task.claim_stamp is not None
    return isinstance(before, Opening) and is_held_review(before)


def is_held_review(opening: Opening) -> bool:
    """Whether a reviewer holds it."""
    return opening.kind is OpeningKind.REVIEW and opening.state is OpeningState.HELD


def holder_of(task: Task, opening: Opening | None) -> str | None:
    """The agent that holds a task or its review, as its row and its opening say; None for none."""
    if task.status is TaskStatus.IN_PROGRESS:
        return task.assignee_id
    return None if opening is None else opening.reviewer_id


def is_ready(
    task: Task,
    *,
    gate_open: bool,
    depends_on: Iterable[Task],
    children: Iterable[Task],
    lease_until: datetime | None,
    now: datetime,
) -> bool:
    """The readiness rule itself, as a person would check it by hand."""
    claimable: Collection[TaskStatus] = (TaskStatus.PENDING, TaskStatus.QUALITY_REVIEW)
    if task.status is TaskStatus.IN_PROGRESS or lease_until is not None:
        free = lease_until is not None and lease_until <= now
    else:
        free = task.status in claimable
    return (
        free
        and not task.is_finished
        and not count_blockers(task, gate_open=gate_open, depends_on=depends_on, children=children)
    )
