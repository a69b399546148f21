"""The root page of an initiative."""

from herdbook.domain.plan.model import Page
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork


def root_page(uow: UnitOfWork, initiative_id: str, *, title: str | None = None) -> Page:
    """An initiative's root page; made once, with this title or the initiative's name."""
    initiative = uow.initiatives.get(initiative_id)
    return uow.pages.get_or_create_root(initiative.id, title or initiative.name)
