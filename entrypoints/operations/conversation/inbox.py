"""`message inbox`: the messages with the names of who sent them, and how many there are."""

from collections.abc import Mapping
from typing import Any

from herdbook.domain.agents.model import Agent
from herdbook.domain.conversation import Message
from herdbook.domain.location.areas import Area
from herdbook.entrypoints.cli.terminal import table
from herdbook.entrypoints.cli.text import local_time, short_id, shorten
from herdbook.entrypoints.context import AppContext
from herdbook.entrypoints.operations.call_use_case import call
from herdbook.entrypoints.operations.model import AT, Operation
from herdbook.entrypoints.operations.serialize import row_to_data
from herdbook.ports.engine.dictionary import AGENTS
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services.listing import Listing

PERSON = "person"
WIDEST = 60


def inbox(
    app: AppContext, *, operation: Operation, arguments: Mapping[str, Any]
) -> Listing[dict[str, Any]]:
    """The unread messages of an agent or the person, each with the name of its `sender`."""
    messages: Listing[Message] = call(app, operation=operation, arguments=arguments)
    names = app.read(Area.WORK, _sender_names, messages, at=arguments.get(AT.name))
    rows = [{**row_to_data(each), "sender": names[each.sender_id]} for each in messages]
    return Listing(rows, messages.total)


def _sender_names(uow: UnitOfWork, messages: list[Message]) -> dict[str | None, str]:
    """The names of the senders by their ids."""
    ids = list(dict.fromkeys(each.sender_id for each in messages if each.sender_id is not None))
    names: dict[str | None, str] = {None: PERSON}
    agents: list[Agent | None] = uow.get(AGENTS, ids)
    for key, agent in zip(ids, agents, strict=True):
        names[key] = key if agent is None else agent.name
    return names


def view(answer: list[dict[str, Any]]) -> str:
    """A line for each message: who, when, whether an answer is needed, and what."""
    rows = [
        (
            short_id(each["id"]),
            each["sender"],
            local_time(each["created_at"]),
            "answer needed" if each["requires_response"] else "",
            shorten(each["content"].partition("\n")[0], WIDEST),
        )
        for each in answer
    ]
    return table(("ID", "FROM", "SENT", "", "TEXT"), rows, "there are none")
