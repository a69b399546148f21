"""Calls use cases by name; resolves unique prefixes of ids, and the acting agent."""

from collections.abc import Mapping
from typing import Any

from herdbook.domain.agents.model import Agent
from herdbook.domain.errors import NotFound
from herdbook.domain.location.areas import Area
from herdbook.entrypoints.context import AppContext
from herdbook.entrypoints.operations.model import AT, Operation, code_of
from herdbook.ports.engine.dictionary import AGENTS, DICTIONARY
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services import crud


def call(app: AppContext, *, operation: Operation, arguments: Mapping[str, Any]) -> Any:
    """Call the use case of an operation in a transaction of its own and return its answer.

    An agent that is not named is the acting agent.
    """
    code, area = code_of(operation.use_case), Area(operation.area)
    refers = {each.name: each.refers for each in operation.parameters if each.refers}
    given = dict(arguments)
    at = given.pop(AT.name, None) if operation.reads else None

    def inside(uow: UnitOfWork) -> Any:
        return code(uow, **resolve_arguments(app, uow, refers, given))

    return app.read(area, inside, at=at) if operation.reads else app.run(area, inside)


def resolve_arguments(
    app: AppContext, uow: UnitOfWork, refers: Mapping[str, str], arguments: Mapping[str, Any]
) -> dict[str, Any]:
    """The arguments with whole ids, without those that are None."""
    found: dict[str, Any] = {}
    for name, value in arguments.items():
        target = refers.get(name, "")
        if target == ACTING:
            found[name] = agent_id(app, uow, value)
        elif target == ACTING_OR_PERSON:
            found[name] = find_agent_id(app, uow, value)
        elif target == AGENT_OR_ACTING:
            found[name] = agent_id(app, uow, None) if value is None else _resolve_agent(uow, value)
        elif target and value is not None:
            found[name] = _resolve_ids(uow, target, value)
        elif value is not None:
            found[name] = value
    return found


def _resolve_ids(uow: UnitOfWork, target: str, value: Any) -> Any:
    kind = DICTIONARY.kinds[target]
    if isinstance(value, str):
        return crud.key_of(uow, kind, value)
    return [crud.key_of(uow, kind, each) for each in value]


ACTING = "acting agent"
"""In place of a kind of rows: the agent that acts, by name or by the context."""
ACTING_OR_PERSON = "acting agent or person"
"""The same; None if a person acts."""
AGENT_OR_ACTING = "agents or acting agent"
"""An agent that something is done to, by default the acting one; the person may name another."""


def agent_id(app: AppContext, uow: UnitOfWork, named: str | None) -> str:
    """The id of the acting agent, which `find_agent_id` finds; InvalidValue if there is none."""
    found = find_agent_id(app, uow, named)
    if found is None:
        raise app.identity.describe_nobody()
    return found


def find_agent_id(app: AppContext, uow: UnitOfWork, named: str | None) -> str | None:
    """The id of the acting agent: the one that the call names, else the one of its context.

    The journal names the same agent. None if a person acts. Raises NotFound for an agent that is
    named and not there.
    """
    if named is None:
        known = app.identity.agent(uow)
        return None if known is None else known.id
    agent = _find_agent(uow, named)
    uow.act_as(agent.name)
    return agent.id


def _resolve_agent(uow: UnitOfWork, named: str) -> str:
    return _find_agent(uow, named).id


def _find_agent(uow: UnitOfWork, named: str) -> Agent:
    """The agent of a name or id; NotFound says which command registers one."""
    try:
        return crud.find_row(uow, AGENTS, named)
    except NotFound as error:
        from shlex import quote  # noqa: PLC0415 - only for the error

        hint = f"`herdbook agent add {quote(named)}` registers it"
        raise NotFound(error.entity, error.key, hint) from None
