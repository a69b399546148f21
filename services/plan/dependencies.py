"""Dependencies between tasks and between phases."""

from collections.abc import Sequence

from herdbook.domain.errors import NotFound
from herdbook.domain.plan.model import Phase, Task
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services.plan.board_model import gate_blockers


def add_task_dependencies(uow: UnitOfWork, task_id: str, others: Sequence[str]) -> Task:
    """Add dependencies to a task; those it has already stay.

    Raises CycleRefused, with the cycle, if tasks would wait for one another.
    """
    there = {each.id for each in uow.tasks.dependencies(task_id)}
    fresh = [other for other in dict.fromkeys(others) if other not in there]
    uow.tasks.add_dependencies((task_id, other) for other in fresh)
    return uow.tasks.get(task_id)


def remove_task_dependencies(uow: UnitOfWork, task_id: str, others: Sequence[str]) -> Task:
    """Remove dependencies from a task; raises NotFound for one it does not have."""
    for other in others:
        if not uow.tasks.remove_dependency(task_id, other):
            raise NotFound("dependency", f"{task_id} after {other}")
    return uow.tasks.get(task_id)


def task_dependencies(uow: UnitOfWork, task_id: str) -> list[Task | Phase]:
    """The tasks a task depends on, finished or not, and the phases that keep it waiting."""
    phase_id = uow.tasks.get(task_id).phase_id
    tasks = uow.tasks.dependencies(task_id)
    return [*tasks, *([] if phase_id is None else _closed_phases(uow, phase_id))]


def _closed_phases(uow: UnitOfWork, phase_id: str) -> list[Phase]:
    """The phase itself while no work may start in it, and those it waits for that are open."""
    phase = uow.phases.get(phase_id)
    initiative = uow.initiatives.get(phase.initiative_id)
    ahead = uow.phases.dependencies(phase_id)
    closed = gate_blockers(initiative, phase, ahead)
    known = {each.id: each for each in (phase, *ahead)}
    return [known[each.id] for each in closed if each.id in known]


def task_dependents(uow: UnitOfWork, task_id: str) -> list[Task]:
    """The tasks that depend on a task."""
    return uow.tasks.dependents(task_id)


def phase_dependencies(uow: UnitOfWork, phase_id: str) -> list[Phase]:
    """The phases a phase depends on, completed or not."""
    return uow.phases.dependencies(phase_id)


def phase_dependents(uow: UnitOfWork, phase_id: str) -> list[Phase]:
    """The phases that depend on a phase."""
    return uow.phases.dependents(phase_id)


def add_phase_dependencies(uow: UnitOfWork, phase_id: str, others: Sequence[str]) -> Phase:
    """Add dependencies to a phase; raises CycleRefused, with the cycle, if that closes one."""
    there = {each.id for each in uow.phases.dependencies(phase_id)}
    for other in dict.fromkeys(others):
        if other not in there:
            uow.phases.add_dependency(phase_id, other)
    return uow.phases.get(phase_id)


def remove_phase_dependencies(uow: UnitOfWork, phase_id: str, others: Sequence[str]) -> Phase:
    """Remove dependencies from a phase; raises NotFound for one it does not have."""
    for other in others:
        if not uow.phases.remove_dependency(phase_id, other):
            raise NotFound("dependency", f"{phase_id} after {other}")
    return uow.phases.get(phase_id)
