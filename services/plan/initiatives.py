"""Initiatives begin with a branch of their own."""

from herdbook.domain.plan.branches import branch_for
from herdbook.domain.plan.model import ExecutionMode, Initiative, InitiativeStatus
from herdbook.ports.engine.dictionary import INITIATIVES
from herdbook.ports.engine.query import find
from herdbook.ports.repositories.base import PAGE
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
    if branch is None:
        stored = uow.initiatives.select_all(find(INITIATIVES, limit=PAGE))
        branch = branch_for(name, {each.branch for each in stored})
    return uow.initiatives.add(
        Initiative(
            name=name,
            branch=branch,
            status=status,
            execution_mode=execution_mode,
            quality_review=quality_review,
        )
    )
