"""Where the work of a phase left what it is to be merged into."""

from typing import NamedTuple

from herdbook.domain.entity import evolve
from herdbook.domain.plan.model import Phase
from herdbook.domain.plan.phases import FINISHED
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork


class FinishedPhase(NamedTuple):
    """A phase that was handed in or completed, and the branch of its initiative."""

    phase: Phase
    branch: str | None


def finished_phase(uow: UnitOfWork, phase_id: str) -> FinishedPhase | None:
    """The phase if it was handed in or completed, else None."""
    phase = uow.phases.get(phase_id)
    if phase.status not in FINISHED:
        return None
    return FinishedPhase(phase, uow.initiatives.get(phase.initiative_id).branch)


def note_merge_base(uow: UnitOfWork, phase_id: str, commit_hash: str) -> Phase:
    """Keep the commit at which the work of a phase began, so that its diff can be told later."""
    phase = uow.phases.get(phase_id)
    if phase.merge_base == commit_hash:
        return phase
    return uow.phases.save(evolve(phase, merge_base=commit_hash))
