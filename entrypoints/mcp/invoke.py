"""Calls the operation of a tool: as the client's agent, in its folder, unless it is halted."""

import os
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from herdbook.domain.errors import InvalidValue
from herdbook.domain.location.areas import Area
from herdbook.entrypoints.mcp.arguments import values_of
from herdbook.entrypoints.mcp.client_session import ClientSession
from herdbook.entrypoints.mcp.schemas import FOLDER, to_output
from herdbook.entrypoints.mcp.tool import Tool, operation_of
from herdbook.entrypoints.operations.agents import handlers as crew_commands
from herdbook.entrypoints.operations.model import code_of, parameters_of
from herdbook.entrypoints.operations.parameter_converter import arguments_of
from herdbook.ports.engine.wakeups import StopEvent
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services.agents import agent_lifecycle
from herdbook.services.agents.halts import note_if_unknown

LONGEST_WAIT = timedelta(minutes=10)
"""The longest wait of a tool; longer than any client waits."""
_CHECK_HALTS = frozenset({"claim"})
"""The tools whose use cases refuse a halted agent themselves; `call` does it for all others."""


def call(
    tool: Tool, client: ClientSession, given: Mapping[str, Any], gone: StopEvent
) -> dict[str, Any]:
    """Call a tool; returns its answer, to a client that asked for it as its output schema says.

    `gone` is set when nobody waits for the answer any more; a wait then ends.
    """
    if tool.takes_folder and FOLDER in given:
        given = dict(given)
        client.use_folder(given.pop(FOLDER))
    values = values_of(tool, given)
    if tool.name == "introduce":
        if "provider" not in given and client.provider:
            values["provider"] = client.provider
        return _introduce(tool, client, values)
    name = client.require_agent() if tool.needs_agent else None
    app = client.get_context(name)
    app.identity.is_verified = name is not None
    if name is not None and not tool.read_only and tool.name not in _CHECK_HALTS:
        app.note = note_if_unknown(app.halts(), name)
    if tool.agent_parameter:
        values[tool.agent_parameter] = name
    wait = values.get("wait")
    if wait is not None and wait > LONGEST_WAIT:
        raise InvalidValue("wait", "is at most 10m; call again to wait for longer")
    app.stop = gone
    operation = operation_of(tool)
    arguments = arguments_of(operation, parameters_of(operation), values)
    return to_output(tool, code_of(operation.code)(app, **arguments), full=client.full)


def _introduce(tool: Tool, client: ClientSession, values: dict[str, Any]) -> dict[str, Any]:
    """Register the agent, and remember its name."""
    name = client.choose_name(values["name"])
    # The agent's process is this one: it ends when the client does.
    values |= {"name": name, "session": client.session, "pid": os.getpid()}
    said = ("name", "provider", "model", "mode", "session", "pid", "prompt")
    agent = crew_commands.introduce(
        client.get_context(name), **{each: values[each] for each in said}
    )
    client.names = [*(each for each in client.names if each != name), name]
    return to_output(tool, agent, full=client.full)


def stop_agents(client: ClientSession) -> None:
    """Record that the agents which introduced themselves have ended.

    An agent that the environment names was registered by another program, which stops it.
    """
    app = client.get_context()
    for name in client.names:
        if name != client.environment_name:
            app.run(Area.WORK, _stop, name, client.session)


def _stop(uow: UnitOfWork, name: str, session: str) -> None:
    agent = uow.agents.by_name(name)
    if agent is not None and agent.session_id == session:
        agent_lifecycle.stop(uow, agent.id)
