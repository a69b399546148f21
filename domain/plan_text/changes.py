"""What a plan text may change in the stored plan.

A text is a snapshot: while somebody edited it, agents went on working. So it moves statuses forward
and never reverts what an agent has started or finished since.
"""

from bisect import bisect_left
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from herdbook.domain.entity import evolve
from herdbook.domain.plan import claims
from herdbook.domain.plan.model import Phase, PhaseStatus, Task, TaskStatus

STEP: Final = 1_000
"""The distance between the `order` numbers of new tasks, so that others fit in between later."""
SortPosition = tuple[int, datetime, str]
"""What orders sibling tasks: `order`, then creation time, then id."""

_PROGRESSION: Final = (
    PhaseStatus.PENDING,
    PhaseStatus.APPROVED,
    PhaseStatus.IN_PROGRESS,
    PhaseStatus.PENDING_REVIEW,
    PhaseStatus.COMPLETED,
)


def task_status_refusal(task: Task, status: TaskStatus, *, held: bool) -> str | None:
    """Why a text cannot give a task this status; None if it can."""
    if held:
        return "somebody holds it"
    if status in (TaskStatus.IN_PROGRESS, TaskStatus.QUALITY_REVIEW):
        return f"only a claim leads to {status}"
    if task.status is TaskStatus.COMPLETED:
        return "what is completed stays completed"
    if task.status is TaskStatus.QUALITY_REVIEW and status is not TaskStatus.COMPLETED:
        return "its review decides"
    return None


def apply_status(task: Task, status: TaskStatus) -> Task:
    """The task after a person has stated its status."""
    match status:
        case TaskStatus.COMPLETED:
            return evolve(task, status=status)
        case TaskStatus.BLOCKED:
            return evolve(task, status=status, assignee_id=None)
        case _ if task.status is TaskStatus.BLOCKED:
            return claims.retry(task)
        case _:
            return claims.release(task)


def phase_status_refusal(phase: Phase, status: PhaseStatus) -> str | None:
    """Why a text cannot give a phase this status; None if it can."""
    if phase.status is PhaseStatus.BLOCKED:
        return None
    if phase.status is PhaseStatus.COMPLETED:
        return "what is completed stays completed"
    if status in _PROGRESSION and _PROGRESSION.index(status) < _PROGRESSION.index(phase.status):
        return f"it has come as far as {phase.status}"
    return None


def assign_orders(siblings: Sequence[SortPosition | None], positions: Sequence[int]) -> list[int]:
    """The `order` numbers of sibling tasks, given in the order they shall have.

    As many as possible keep their number. The others, and those without a number, are put in
    between; where there is no room, what follows moves on. Where none has a number, their positions
    in the whole text decide.
    """
    kept = _longest_increasing(siblings)
    numbers: list[int] = []
    at = 0
    while at < len(siblings):
        if at in kept:
            numbers.append(_order_after_previous(siblings, numbers, at, kept))
            at += 1
            continue
        end = at
        while end < len(siblings) and end not in kept:
            end += 1
        following = siblings[end] if end < len(siblings) else None
        left = numbers[-1] if numbers else None
        right = following[0] if following else None
        numbers += _orders_between(left, right, positions[at:end])
        at = end
    return numbers


def _order_after_previous(
    siblings: Sequence[SortPosition | None], numbers: Sequence[int], at: int, kept: set[int]
) -> int:
    """The task's own number, or one after the previous task where that was moved past it."""
    place = siblings[at]
    number = place[0] if place else 0
    if not numbers:
        return number
    before = siblings[at - 1]
    unmoved = at - 1 in kept and before is not None and before[0] == numbers[-1]
    # Of two stored tasks with the same number the older one is first; a new one is younger.
    if number > numbers[-1] or (number == numbers[-1] and unmoved):
        return number
    kept.discard(at)
    return numbers[-1] + STEP


def _orders_between(left: int | None, right: int | None, positions: Sequence[int]) -> list[int]:
    count = len(positions)
    steps = range(1, count + 1)
    if left is None and right is None:
        return [STEP * position for position in positions]
    if left is None and right is not None:
        return [right - STEP * (count + 1 - step) for step in steps]
    start = left or 0
    if right is not None and right - start > count:
        return [start + (right - start) * step // (count + 1) for step in steps]
    return [start + STEP * step for step in steps]


def _longest_increasing(siblings: Sequence[SortPosition | None]) -> set[int]:
    """The longest subsequence that is already in the right order, as indexes."""
    ends: list[SortPosition] = []
    last: list[int] = []
    before: dict[int, int | None] = {}
    for at, place in enumerate(siblings):
        if place is None:
            continue
        length = bisect_left(ends, place)
        before[at] = last[length - 1] if length else None
        ends[length : length + 1] = [place]
        last[length : length + 1] = [at]
    kept: set[int] = set()
    step = last[-1] if last else None
    while step is not None:
        kept.add(step)
        step = before[step]
    return kept
