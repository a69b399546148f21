"""What waits for what: tasks for tasks, phases for phases."""

from collections.abc import Sequence

from herdbook.domain.errors import NotFound
from herdbook.domain.plan.model import Phase, Task
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork


def add_task_dependencies(uow: UnitOfWork, task_id: str, others: Sequence[str]) -> Task:
    """Let a task wait for others; CycleRefused names what would wait for one another.

    What it waits for already stays so.
    """
    there = {each.id for each in uow.tasks.dependencies(task_id)}
    fresh = [other for other in dict.fromkeys(others) if other not in there]
    uow.tasks.add_dependencies((task_id, other) for other in fresh)
    return uow.tasks.get(task_id)


def remove_task_dependencies(uow: UnitOfWork, task_id: str, others: Sequence[str]) -> Task:
    """Let a task no longer wait for others; NotFound if it did not."""
    for other in others:
        if not uow.tasks.remove_dependency(task_id, other):
            raise NotFound("dependency", f"{task_id} after {other}")
    return uow.tasks.get(task_id)


def task_dependencies(uow: UnitOfWork, task_id: str) -> list[Task]:
    """What a task waits for, finished or not."""
    return uow.tasks.dependencies(task_id)


def add_phase_dependencies(uow: UnitOfWork, phase_id: str, others: Sequence[str]) -> Phase:
    """Let a phase wait for others; CycleRefused names what would wait for one another."""
    there = {each.id for each in uow.phases.dependencies(phase_id)}
    for other in dict.fromkeys(others):
        if other not in there:
            uow.phases.add_dependency(phase_id, other)
    return uow.phases.get(phase_id)


def remove_phase_dependencies(uow: UnitOfWork, phase_id: str, others: Sequence[str]) -> Phase:
    """Let a phase no longer wait for others; NotFound if it did not."""
    for other in others:
        if not uow.phases.remove_dependency(phase_id, other):
            raise NotFound("dependency", f"{phase_id} after {other}")
    return uow.phases.get(phase_id)
