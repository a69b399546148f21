"""Approve phases; and where the work of a phase left what it is to be merged into."""

from collections.abc import Sequence
from typing import NamedTuple

from herdbook.domain.entity import evolve
from herdbook.domain.errors import InvalidValue
from herdbook.domain.plan.model import Phase, PhaseStatus
from herdbook.domain.plan.phases import FINISHED
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork


class FinishedPhase(NamedTuple):
    """A phase that was handed in or completed, and the branch of its initiative."""

    phase: Phase
    branch: str | None


def approve(uow: UnitOfWork, phase_ids: Sequence[str]) -> list[Phase]:
    """Approve pending phases, so that work may start in them; those under way stay as they are.

    Raises InvalidValue for a phase that is blocked: a person who set it so has to say otherwise.
    """
    found = []
    for phase in uow.phases.get_many(dict.fromkeys(phase_ids)):
        if phase.status is PhaseStatus.BLOCKED:
            reason = f"phase {phase.name!r} is blocked; `herdbook phase set` changes that"
            raise InvalidValue("phase", f"{reason}. Nothing was written")
        pending = phase.status is PhaseStatus.PENDING
        approved = evolve(phase, status=PhaseStatus.APPROVED) if pending else phase
        found.append(uow.phases.save(approved) if pending else phase)
    return found


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
