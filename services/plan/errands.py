"""Errands: small changes to a project outside any initiative, from their start to their end."""

from herdbook.domain.entity import evolve
from herdbook.domain.errors import InvalidValue
from herdbook.domain.plan.model import Errand, ErrandStatus
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork

FINAL_STATUSES = (ErrandStatus.MERGED, ErrandStatus.ABANDONED)
"""Where an errand stays once it has come there."""


def start(
    uow: UnitOfWork,
    project_id: str,
    description: str,
    branch: str,
    *,
    base_branch: str | None = None,
    agent_id: str | None = None,
    errand_id: str = "",
) -> Errand:
    """Begin an errand, on the project's default branch unless told otherwise.

    The id may be the caller's; AlreadyExists if it is taken.
    """
    project = uow.projects.get(project_id)
    return uow.errands.add(
        Errand(
            id=errand_id,
            description=description,
            branch=branch,
            base_branch=project.default_branch if base_branch is None else base_branch,
            agent_id=agent_id,
            project_id=project.id,
        )
    )


def change_status(uow: UnitOfWork, errand_id: str, status: ErrandStatus) -> Errand:
    """Take an errand a step on or back; InvalidValue if it was merged or abandoned already."""
    errand = uow.errands.get(errand_id)
    if errand.status == status:
        return errand
    if errand.status in FINAL_STATUSES:
        reason = f"errand {errand.id!r} is {errand.status} and stays so. Nothing was written"
        raise InvalidValue("status", reason)
    return uow.errands.save(evolve(errand, status=status))
