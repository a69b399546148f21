"""What a client may read as a document: the board, and one task."""

from typing import Any

from herdbook.entrypoints.commands import board as boards
from herdbook.entrypoints.commands import keeping
from herdbook.entrypoints.mcp.caller import Caller
from herdbook.entrypoints.rows import plain
from herdbook.ports.unit_of_work import UnitOfWork
from herdbook.services import depending


def board(caller: Caller) -> Any:
    """The plan by state, and who holds what."""
    return boards.board(caller.here(), initiative=None, watch=False)


def task(caller: Caller, named: str) -> dict[str, Any]:
    """One task, by its id or the beginning of it, with what it waits for."""
    here = caller.here()
    row = keeping.show(here, id=named, entity="tasks")

    def question(uow: UnitOfWork) -> Any:
        return depending.task_waits_for(uow, row["id"])

    return {"task": row, "waits_for": plain(here.read(None, question))}
