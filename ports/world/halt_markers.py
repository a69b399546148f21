"""Markers that tell hooks which agents are halted, without reading a store."""

from collections.abc import Mapping
from typing import Protocol


class HaltMarkers(Protocol):
    """Markers of sessions and agents that may not use any tool."""

    def set_halts(
        self, record: str, sessions: Mapping[str, str], agents: Mapping[str, str] | None = None
    ) -> None:
        """Replace a record's markers by these sessions and agents, each with its reason.

        `record` is the uuid of its store. Markers of other records stay as they are.
        """
