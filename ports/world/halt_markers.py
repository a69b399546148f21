"""The marks by which hooks know halted agents without reading any store."""

from collections.abc import Mapping
from typing import Protocol


class HaltMarkers(Protocol):
    """Marks of sessions and agents that may use no tool."""

    def set_halts(
        self, record: str, sessions: Mapping[str, str], agents: Mapping[str, str] | None = None
    ) -> None:
        """Let a record halt these sessions and agents, each for its reason, and no others.

        `record` is the uuid of its store. Marks of other records stay as they are.
        """
