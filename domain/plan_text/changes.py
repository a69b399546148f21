"""What a plan that was read may change in the plan that is kept.

A text is a snapshot: while somebody edited it, agents went on. So it moves statuses onwards and
never takes back what an agent has begun or finished since.
"""

from bisect import bisect_left
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from herdbook.domain.entity import evolve
from herdbook.domain.plan import claims
from herdbook.domain.plan.model import Phase, PhaseStatus, Task, TaskStatus

STEP: Final = 1_000
"""How far apart tasks are put, so that others fit in between later."""
Place = tuple[int, datetime, str]
"""What decides the order of tasks that stand together: `order`, then their age, then their id."""

_ONWARDS: Final = (
    PhaseStatus.PENDING,
    PhaseStatus.APPROVED,
    PhaseStatus.IN_PROGRESS,
    PhaseStatus.PENDING_REVIEW,
    PhaseStatus.COMPLETED,
)


def why_task_stays(task: Task, status: TaskStatus, *, held: bool) -> str | None:
    """Why a text cannot give a task this status, None if it can."""
    if held:
        return "somebody holds it"
    if status in (TaskStatus.IN_PROGRESS, TaskStatus.QUALITY_REVIEW):
        return f"only a claim leads to {status}"
    if task.status is TaskStatus.COMPLETED:
        return "what is completed stays completed"
    if task.status is TaskStatus.QUALITY_REVIEW and status is not TaskStatus.COMPLETED:
        return "its review decides"
    return None


def restated(task: Task, status: TaskStatus) -> Task:
    """The task once a person has said what its status is."""
    match status:
        case TaskStatus.COMPLETED:
            return evolve(task, status=status)
        case TaskStatus.BLOCKED:
            return evolve(task, status=status, assignee_id=None)
        case _ if task.status is TaskStatus.BLOCKED:
            return claims.retry(task)
        case _:
            return claims.release(task)


def why_phase_stays(phase: Phase, status: PhaseStatus) -> str | None:
    """Why a text cannot give a phase this status, None if it can."""
    if phase.status is PhaseStatus.BLOCKED:
        return None
    if phase.status is PhaseStatus.COMPLETED:
        return "what is completed stays completed"
    if status in _ONWARDS and _ONWARDS.index(status) < _ONWARDS.index(phase.status):
        return f"it has come as far as {phase.status}"
    return None


def orders(siblings: Sequence[Place | None], positions: Sequence[int]) -> list[int]:
    """The `order` of tasks that stand together, in the order they are to have.

    As many as can keep theirs do. The others, and those that have no place among them yet, are put
    in between; where there is no room, what follows moves on. Where none has a place, their
    positions in the whole text decide.
    """
    kept = _longest_rising(siblings)
    numbers: list[int] = []
    at = 0
    while at < len(siblings):
        if at in kept:
            numbers.append(_pushed(siblings, numbers, at, kept))
            at += 1
            continue
        end = at
        while end < len(siblings) and end not in kept:
            end += 1
        following = siblings[end] if end < len(siblings) else None
        left = numbers[-1] if numbers else None
        right = following[0] if following else None
        numbers += _between(left, right, positions[at:end])
        at = end
    return numbers


def _pushed(
    siblings: Sequence[Place | None], numbers: Sequence[int], at: int, kept: set[int]
) -> int:
    """Its own number, or one behind the one before where that has been put too far."""
    place = siblings[at]
    number = place[0] if place else 0
    if not numbers:
        return number
    before = siblings[at - 1]
    unmoved = at - 1 in kept and before is not None and before[0] == numbers[-1]
    # Of two that were there with the same number the older one is first; a new one is younger.
    if number > numbers[-1] or (number == numbers[-1] and unmoved):
        return number
    kept.discard(at)
    return numbers[-1] + STEP


def _between(left: int | None, right: int | None, positions: Sequence[int]) -> list[int]:
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


def _longest_rising(siblings: Sequence[Place | None]) -> set[int]:
    """Which of them already stand in the right order, as many as possible."""
    ends: list[Place] = []
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
