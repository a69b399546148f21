"""The resources that a client may read: the board, and one task."""

from typing import Any

from herdbook.entrypoints.mcp.client_session import ClientSession
from herdbook.entrypoints.operations.board import handlers as boards
from herdbook.entrypoints.operations.crud import handlers as crud_handlers
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services.plan import dependencies


def board(client: ClientSession) -> Any:
    """The plan by state, with the agents that hold tasks."""
    return boards.board(client.get_context(), initiative=None, watch=False)


def task(client: ClientSession, named: str) -> dict[str, Any]:
    """One task, by its id or a prefix of it, with its dependencies."""
    app = client.get_context()
    row = crud_handlers.show(app, id=named, entity="tasks")

    def question(uow: UnitOfWork) -> Any:
        return dependencies.task_dependencies(uow, row.id)

    return {"task": row, "waits_for": app.read(None, question)}
