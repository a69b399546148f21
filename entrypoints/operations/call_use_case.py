"""Calls use cases by name; resolves unique prefixes of ids, and the acting agent."""

from collections.abc import Mapping
from typing import Any

from herdbook.domain.errors import InvalidValue
from herdbook.domain.location.areas import Area
from herdbook.entrypoints.context import AppContext
from herdbook.entrypoints.operations.model import code_of
from herdbook.ports.engine.dictionary import AGENTS, DICTIONARY
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services import crud


def call(
    app: AppContext,
    *,
    use_case: str,
    area: str,
    writes: bool,
    refers: Mapping[str, str],
    arguments: Mapping[str, Any],
) -> Any:
    """Call a use case in a transaction of its own and return its answer.

    `refers` has the kind of rows that an argument names. An agent that is not named is the acting
    agent.
    """
    code = code_of(use_case)

    def inside(uow: UnitOfWork) -> Any:
        return code(uow, **resolve_arguments(app, uow, refers, arguments))

    transact = app.run if writes else app.read
    return transact(Area(area), inside)


def resolve_arguments(
    app: AppContext, uow: UnitOfWork, refers: Mapping[str, str], arguments: Mapping[str, Any]
) -> dict[str, Any]:
    """The arguments with whole ids, without those that are None."""
    found = {}
    for name, value in arguments.items():
        target = refers.get(name, "")
        if target == ACTING:
            found[name] = agent_id(app, uow, value)
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
"""In place of a kind of rows: an agent, by default the acting one."""


def agent_id(app: AppContext, uow: UnitOfWork, named: str | None) -> str:
    """The id of the acting agent, which `find_agent_id` finds; InvalidValue if there is none."""
    found = find_agent_id(app, uow, named)
    if found is None:
        reason = "is not known here; name it with --agent, or set HERDBOOK_AGENT"
        raise InvalidValue("agent", reason)
    return found


def find_agent_id(app: AppContext, uow: UnitOfWork, named: str | None) -> str | None:
    """The id of the acting agent: the one that the call names, else the one of its context.

    The journal names the same agent. None if a person acts. Raises NotFound for an agent that is
    named and not there.
    """
    if named is None:
        known = app.identity.agent(uow)
        return None if known is None else known.id
    agent = crud.find_row(uow, AGENTS, named)
    uow.act_as(agent.name)
    return agent.id
