"""The projects that an initiative touches, and when a project was fetched."""

from collections.abc import Sequence
from datetime import datetime

from herdbook.domain.entity import evolve
from herdbook.domain.errors import InvalidValue
from herdbook.domain.plan.model import Project
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork


def projects_of(uow: UnitOfWork, initiative_id: str) -> list[Project]:
    """The projects an initiative touches, by name."""
    touched = uow.projects.of_initiative(uow.initiatives.get(initiative_id).id)
    return sorted(touched, key=lambda each: each.name)


def set_projects(
    uow: UnitOfWork, initiative_id: str, project_ids: Sequence[str] = (), *, none: bool = False
) -> list[Project]:
    """Set the projects an initiative touches; links to projects that stay are not rewritten.

    Raises InvalidValue if neither projects nor `none` are given, or both.
    """
    if bool(project_ids) is none:
        raise InvalidValue("project_ids", "name the projects, or say none, and not both")
    uow.projects.set_for_initiative(uow.initiatives.get(initiative_id).id, project_ids)
    return projects_of(uow, initiative_id)


def mark_fetched(uow: UnitOfWork, project_id: str, *, at: datetime | None = None) -> Project:
    """Note that a project was fetched, now or at a time; a later time that is noted stays."""
    project = uow.projects.get(project_id)
    fetched_at = uow.now if at is None else at
    if project.last_fetched_at is not None and project.last_fetched_at >= fetched_at:
        return project
    return uow.projects.save(evolve(project, last_fetched_at=fetched_at))
