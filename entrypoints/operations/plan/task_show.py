"""`task show`: a task with its place in the plan, its holder, its dependencies and its history."""

from typing import NotRequired, cast

from herdbook.domain.journal import Position
from herdbook.domain.location.areas import Area
from herdbook.entrypoints.context import AppContext
from herdbook.entrypoints.operations.past_answer import PastAnswer, past_note
from herdbook.entrypoints.operations.serialize import row_to_data
from herdbook.ports.engine.dictionary import TASKS
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services import crud
from herdbook.services.plan.task_details import TaskDetails, task_details


class ShownTask(TaskDetails):
    """A task with what is known of it, and as of when if that is not now."""

    as_of: NotRequired[PastAnswer]


def show(
    app: AppContext,
    *,
    id: str,  # noqa: A002 - as in the table
    at: Position | None = None,
    entity: str,
) -> ShownTask:
    """A task: all its fields, and what is known of it besides."""
    del entity  # tasks, as the table says

    def inside(uow: UnitOfWork) -> ShownTask:
        task = crud.find_row(uow, TASKS, id)
        known = {**row_to_data(task), **task_details(uow, task), **past_note(uow)}
        return cast("ShownTask", known)

    return app.read(Area.WORK, inside, at=at)
