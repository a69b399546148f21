"""How a phase follows its tasks: one rule, applied to the net changes of a transaction."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from herdbook.domain.entity import evolve
from herdbook.domain.plan.model import (
    ExecutionMode,
    Initiative,
    Phase,
    PhaseStatus,
    Task,
    TaskStatus,
)

FINISHED = (PhaseStatus.COMPLETED, PhaseStatus.PENDING_REVIEW)


class TaskChange(NamedTuple):
    """A task before and after a transaction; None where it did not exist."""

    before: Task | None
    after: Task | None


class PhaseTasks(NamedTuple):
    """What a transaction did to the tasks of a phase.

    `work_began`: a task was claimed, or set to in progress. `work_came`: an unfinished task was
    added, moved here or reopened. `work_ended`: a task was finished. `work_left`: an unfinished
    task was removed or moved away.
    """

    work_began: bool
    work_came: bool
    work_ended: bool
    work_left: bool


def summarize_changes(phase_id: str, changes: Iterable[TaskChange]) -> PhaseTasks:
    """Tell what the net changes of tasks mean for one phase."""
    began = came = ended = left = False
    for before, after in changes:
        was = before if before is not None and before.phase_id == phase_id else None
        now = after if after is not None and after.phase_id == phase_id else None
        began = began or (now is not None and _is_begun(was, now))
        open_before = was is not None and not was.is_finished
        open_after = now is not None and not now.is_finished
        came = came or (open_after and not open_before)
        ended = ended or (open_before and now is not None and now.is_finished)
        left = left or (open_before and now is None)
    return PhaseTasks(began, came, ended, left)


def follow_tasks(
    phase: Phase,
    tasks: PhaseTasks,
    initiative: Callable[[], Initiative | None],
    has_open_tasks: Callable[[], bool],
) -> Phase:
    """The phase after a transaction that changed its tasks and did not set its status.

    - Work on a task begins the phase.
    - An unfinished task that comes into a finished phase reopens it.
    - When its last unfinished task is finished, removed or moved away, the phase is completed in a
      yolo initiative and waits for its review in any other, unless it is finished already. A phase
      that nobody has approved yet stays pending when tasks are only taken out of it: it is still
      being planned. In a yolo initiative nobody approves, and the next phase would never open.
      A phase that a person blocked stays blocked in any initiative until one of its tasks ends it.

    `initiative` and `has_open_tasks` are asked only where the answer matters.
    """
    if tasks.work_began:
        return _with_status(phase, PhaseStatus.IN_PROGRESS)
    if tasks.work_came:
        return reopen(phase)
    if not (tasks.work_ended or tasks.work_left) or phase.status in FINISHED or has_open_tasks():
        return phase
    owner = initiative()
    yolo = owner is not None and owner.execution_mode is ExecutionMode.YOLO
    kept = (PhaseStatus.BLOCKED,) if yolo else (PhaseStatus.BLOCKED, PhaseStatus.PENDING)
    if not tasks.work_ended and phase.status in kept:
        return phase
    return _with_status(phase, PhaseStatus.COMPLETED if yolo else PhaseStatus.PENDING_REVIEW)


def reopen(phase: Phase) -> Phase:
    """A finished phase in progress again; any other as it is."""
    return _with_status(phase, PhaseStatus.IN_PROGRESS) if phase.status in FINISHED else phase


def _is_begun(was: Task | None, now: Task) -> bool:
    """Whether work began: a new status, or a new claim, which counts the fence up."""
    if now.status is not TaskStatus.IN_PROGRESS:
        return False
    return was is None or was.status is not TaskStatus.IN_PROGRESS or was.fence != now.fence


def _with_status(phase: Phase, status: PhaseStatus) -> Phase:
    return phase if phase.status is status else evolve(phase, status=status)
