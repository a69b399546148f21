"""Errands: small changes to a project outside any initiative."""

from herdbook.domain.entity import evolve
from herdbook.domain.errors import InvalidValue
from herdbook.domain.plan.model import Errand, ErrandStatus
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork

FINAL_STATUSES = (ErrandStatus.MERGED, ErrandStatus.ABANDONED)
"""The statuses that an errand keeps once it has them."""


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
    """Start an errand, based on the project's default branch unless `base_branch` is given.

    The caller may choose the id; raises AlreadyExists if it is in use.
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
    """Change an errand's status; raises InvalidValue if it was merged or abandoned already."""
    errand = uow.errands.get(errand_id)
    if errand.status == status:
        return errand
    if errand.status in FINAL_STATUSES:
        reason = f"errand {errand.id!r} is {errand.status} and stays so. Nothing was written"
        raise InvalidValue("status", reason)
    return uow.errands.save(evolve(errand, status=status))
