"""A transaction of a broker's client."""

from datetime import datetime
from typing import Any, Protocol

from attrs import define

from herdbook.adapters.duckdb.broker.open_file import SharedSnapshot


class BrokerPeer(Protocol):
    """Somebody at the other end of a connection."""

    pid: int
    command: str

    def answer(self, message: list[Any]) -> None:
        """Send an answer; never raises and never waits."""


@define(eq=False)
class Turn:
    """A transaction that waits, or that runs since it got its cursor."""

    client: BrokerPeer
    space: str
    write: bool
    begun: float
    deadline: float
    last_seen: float
    snapshot: SharedSnapshot | None = None
    version: int = 0
    since: datetime | None = None
