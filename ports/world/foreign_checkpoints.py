"""Checkpoints read from another program's store, and what could not be read."""

from collections.abc import Iterator
from typing import NamedTuple, Protocol

from herdbook.domain.checkpoints.model import TaggedBytes
from herdbook.ports.checkpoint_storage.value_store import Version
from herdbook.ports.repositories.checkpoints import TaskWrite


class ForeignCheckpoint(NamedTuple):
    """A checkpoint with everything that belongs to it, under the names it had."""

    thread_id: str
    namespace: str
    checkpoint_id: str
    parent_id: str | None
    run_id: str | None
    metadata: TaggedBytes
    state: TaggedBytes
    values: dict[str, tuple[Version, TaggedBytes]]
    writes: list[TaskWrite]
    size: int


class ReadFailure(NamedTuple):
    """Something that could not be read, and why."""

    key: str
    reason: str


class CheckpointSource(Protocol):
    """Another program's store of checkpoints. Reading it changes nothing there."""

    @property
    def total(self) -> int:
        """How many checkpoints there are."""

    @property
    def left_out(self) -> int:
        """How many writes belong to checkpoints that do not exist."""

    @property
    def size(self) -> int:
        """How many bytes everything takes there."""

    def checkpoints(self) -> Iterator[ForeignCheckpoint | ReadFailure]:
        """All checkpoints, thread by thread, parents before their children.

        A failure to read a checkpoint's writes is reported after the checkpoint.
        """
