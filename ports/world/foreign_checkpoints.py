"""What a reader tells of checkpoints that somebody else has kept, and what it could not read."""

from collections.abc import Iterator
from typing import NamedTuple, Protocol

from herdbook.domain.checkpoints.model import Typed
from herdbook.ports.checkpoint_storage.value_store import Version
from herdbook.ports.repositories.checkpoints import Done


class Foreign(NamedTuple):
    """A checkpoint with all that belongs to it, under the names it had."""

    thread_id: str
    namespace: str
    checkpoint_id: str
    parent_id: str | None
    run_id: str | None
    metadata: Typed
    state: Typed
    values: dict[str, tuple[Version, Typed]]
    writes: list[Done]
    size: int


class Untold(NamedTuple):
    """Something that could not be read, and why."""

    key: str
    reason: str


class Source(Protocol):
    """A place that somebody else keeps checkpoints in. Reading it changes nothing there."""

    @property
    def total(self) -> int:
        """How many checkpoints there are."""

    @property
    def left_out(self) -> int:
        """How many writes belong to checkpoints that are not there."""

    @property
    def size(self) -> int:
        """How many bytes all of it takes there."""

    def checkpoints(self) -> Iterator[Foreign | Untold]:
        """All checkpoints, thread by thread, parents before their children.

        What of a checkpoint's writes cannot be read is told behind it.
        """
