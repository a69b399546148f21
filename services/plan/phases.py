"""How a phase follows its tasks."""

from herdbook.domain.plan import claims as rules
from herdbook.domain.plan.model import Phase, Task
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork


def close(uow: UnitOfWork, phase: Phase) -> None:
    """End a phase whose last task is finished; one with something left to do goes on."""
    if not uow.tasks.any_unfinished_in(phase.id):
        initiative = uow.initiatives.get(phase.initiative_id)
        uow.phases.save(rules.phase_after_last_task(phase, initiative))


def follow(uow: UnitOfWork, before: Task | None, after: Task) -> None:
    """Let the phase of a task follow a change by hand: taken up again, or ended with its last."""
    if after.phase_id is None:
        return
    moved = before is None or before.phase_id != after.phase_id
    phase = uow.phases.get(after.phase_id)
    if not after.finished and (moved or (before is not None and before.finished)):
        begun = rules.phase_after_new_task(phase)
        if begun is not phase:
            uow.phases.save(begun)
    elif after.finished and before is not None and not before.finished:
        close(uow, phase)
