"""Herdbook's own event: what an agent was registered with, so that the record learns it too."""

from typing import Any, Final

from herdbook.adapters.hosts.payload import as_mapping, as_name
from herdbook.domain.agents.model import Agent, AgentMode
from herdbook.domain.record.events import HookEvent, SessionSetup

EVENT: Final = "agent-registration"


def payload(
    agent: Agent, provider: str | None, model: str | None, mode: str | None
) -> dict[str, Any] | None:
    """The payload for an agent that was registered with these; None if there is nothing to tell."""
    told = {
        "session_id": agent.session_id,
        "provider": provider,
        "model": model,
        "mode": mode,
    }
    known = {name: value for name, value in told.items() if value is not None}
    return {"agent": agent.name, **known} if known else None


def parse(event: HookEvent, raw: object) -> HookEvent:
    """The event with what its payload says."""
    fields = as_mapping(raw)
    mode = fields.get("mode")
    return event._replace(
        agent=as_name(fields.get("agent")),
        session_id=as_name(fields.get("session_id")),
        setup=SessionSetup(
            as_name(fields.get("provider")),
            as_name(fields.get("model")),
            AgentMode(mode) if mode in list(AgentMode) else None,
        ),
    )
