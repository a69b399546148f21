"""Initiatives begin with a branch of their own."""

from herdbook.domain.plan.model import ExecutionMode, Initiative, InitiativeStatus
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork


def begin_initiative(
    uow: UnitOfWork,
    name: str,
    *,
    branch: str | None = None,
    status: InitiativeStatus = InitiativeStatus.ACTIVE,
    execution_mode: ExecutionMode = ExecutionMode.REVIEW_PER_PHASE,
    quality_review: bool = False,
) -> Initiative:
    """Add an initiative; unless a branch is given, it gets one that is named after it."""
    initiative = Initiative(
        name=name,
        branch=branch,
        status=status,
        execution_mode=execution_mode,
        quality_review=quality_review,
    )
    return uow.initiatives.add_all(uow.initiatives.with_branches([initiative]))[0]
