"""The port to what agents were last seen doing."""

from datetime import datetime
from typing import Protocol

from herdbook.domain.agents.model import Agent


class AgentActivity(Protocol):
    """Tells when an agent last used a tool, by the events of its hooks on this machine."""

    def last_seen(self, agent: Agent) -> datetime | None:
        """When the agent was last seen; None if it never was, or its session has ended."""


class NoActivity:
    """Knows of no activity, as on a machine without hooks."""

    def last_seen(self, agent: Agent) -> datetime | None:  # noqa: ARG002 - the port's signature
        """None."""
        return None


NO_ACTIVITY = NoActivity()
