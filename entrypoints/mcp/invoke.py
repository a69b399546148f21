"""A tool, done: as the agent that calls, in the folder it works in, unless it is halted."""

import os
from collections.abc import Mapping
from datetime import timedelta
from threading import Event
from typing import Any

from herdbook.domain.errors import AlreadyExists, InvalidValue
from herdbook.domain.location.areas import Area
from herdbook.entrypoints.bootstrap import Here
from herdbook.entrypoints.mcp.arguments import values_of
from herdbook.entrypoints.mcp.client_session import Caller
from herdbook.entrypoints.mcp.schemas import shaped
from herdbook.entrypoints.mcp.tool import Tool, operation_of
from herdbook.entrypoints.operations.agents import handlers as crew_commands
from herdbook.entrypoints.operations.model import code_of, parameters_of
from herdbook.entrypoints.operations.parameter_converter import arguments_of
from herdbook.entrypoints.operations.plan.handlers import refuse_halted
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services.agents import agent_lifecycle

LONGEST_WAIT = timedelta(minutes=10)
"""Longer than any client waits for a tool."""


def call(tool: Tool, caller: Caller, given: Mapping[str, Any], gone: Event) -> dict[str, Any]:
    """Do what a tool is for; its answer as its schema says.

    Once `gone` is set, nobody waits for the answer any more.
    """
    values = values_of(tool, given)
    if tool.name == "introduce":
        if "provider" not in given and caller.provider:
            values["provider"] = caller.provider
        return _introduced(tool, caller, values)
    name = caller.agent() if tool.personal else None
    here = caller.here(name)
    if name is not None and not tool.reads:
        here = refuse_halted(here, name)
    if tool.acts:
        values[tool.acts] = name
    wait = values.get("wait")
    if wait is not None and wait > LONGEST_WAIT:
        raise InvalidValue("wait", "is at most 10m; call again to wait for longer")
    here.enough, here.pause = gone.is_set, gone.wait
    return shaped(tool, _done(tool, here, values))


def _done(tool: Tool, here: Here, values: Mapping[str, Any]) -> Any:
    operation = operation_of(tool)
    given = arguments_of(operation, parameters_of(operation), values)
    return code_of(operation.code)(here, **given)


def _introduced(tool: Tool, caller: Caller, values: dict[str, Any]) -> dict[str, Any]:
    """Register the agent; one whose process is gone without a word may come back at once."""
    name = caller.new_name(values["name"])
    here = caller.here(name)
    here = refuse_halted(here, name)
    # Its process is this one: it ends when the client does.
    values |= {"name": name, "session": caller.session, "pid": os.getpid()}
    try:
        agent = _done(tool, here, values)
    except AlreadyExists:
        if all(each.name != name for each in crew_commands.crashed(here)):
            raise
        agent = _done(tool, here, values)
    caller.names = [*(each for each in caller.names if each != name), name]
    return shaped(tool, agent)


def farewell(caller: Caller) -> None:
    """Write down that the agents which introduced themselves have ended.

    One that the environment named is somebody else's to stop.
    """
    here = caller.here()
    for name in caller.names:
        if name != caller.pinned:
            here.run(Area.WORK, _stop, name, caller.session)


def _stop(uow: UnitOfWork, name: str, session: str) -> None:
    agent = uow.agents.by_name(name)
    if agent is not None and agent.session_id == session:
        agent_lifecycle.stop(uow, agent.id)
