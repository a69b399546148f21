"""Names and registers the agent at the other end of a connection."""

from random import Random

from herdbook.domain.agents.model import Agent, AgentMode
from herdbook.domain.agents.names import propose_name
from herdbook.domain.errors import AlreadyExists
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.ports.world.halts import Halts
from herdbook.ports.world.system import Processes
from herdbook.services.agents import agent_lifecycle
from herdbook.services.agents.halts import refuse_halted


def free_name(uow: UnitOfWork, known_as: str | None, session_id: str | None) -> str:
    """The name of the agent of a name or of a session; else a name that no agent has."""
    agent = agent_lifecycle.find_acting_agent(uow, known_as, session_id)
    if agent is not None:
        return agent.name
    return propose_name(Random(), agent_lifecycle.UsedNames(uow))  # noqa: S311 - a name is no secret


def introduce(
    uow: UnitOfWork,
    name: str,
    *,
    halts: Halts,
    host: str,
    pid: int,
    started_at_of: Processes,
    provider: str | None = None,
    model: str | None = None,
    mode: AgentMode | None = None,
    session_id: str | None = None,
    prompt: str | None = None,
) -> Agent:
    """Register an agent by name with the process of this host that it works in.

    An agent whose earlier process on this host ended without stopping it is marked as crashed
    first, so it may come back at once. Raises AgentHalted for a halted agent, and AlreadyExists
    while the agent of that name is at work elsewhere.
    """

    def register() -> Agent:
        return agent_lifecycle.register(
            uow,
            name,
            provider=provider,
            model=model,
            mode=mode,
            session_id=session_id,
            host=host,
            pid=pid,
            process_started_at=started_at_of(pid),
            prompt=prompt,
        )

    refuse_halted(uow, halts, name)
    try:
        return register()
    except AlreadyExists:
        crashed = agent_lifecycle.find_crashed(uow, host, started_at_of)
        if all(each.name != name for each in crashed):
            raise
        return register()
