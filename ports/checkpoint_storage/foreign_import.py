"""Adds checkpoints of another program to a space, and takes over whole threads of it.

What a space has stays as it is, so everything here may be repeated.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from herdbook.domain.checkpoints.model import (
    TaggedBytes,
    checkpoint_key,
    lane_key,
    thread_key,
    write_key,
)
from herdbook.domain.errors import InvalidValue
from herdbook.domain.journal import OperationResult
from herdbook.ports.checkpoint_storage.checkpoint_writer import CheckpointWriter
from herdbook.ports.checkpoint_storage.thread_operations import existing_ids
from herdbook.ports.checkpoint_storage.value_store import ChannelValue
from herdbook.ports.engine.dictionary import CHECKPOINTS, LANES, OPERATIONS, WRITES
from herdbook.ports.engine.query import find
from herdbook.ports.unit_of_work.changes import RowReader
from herdbook.ports.world.foreign_checkpoints import ForeignCheckpoint, ReadFailure

_NEVER_PRUNED = datetime(9999, 12, 31, tzinfo=UTC)


class ImportCounts(NamedTuple):
    """How many checkpoints and writes were added, and how many were there already."""

    added: int = 0
    kept: int = 0
    writes_added: int = 0
    writes_kept: int = 0

    def plus(self, other: "ImportCounts") -> "ImportCounts":
        """The sum of both."""
        return ImportCounts(*(one + more for one, more in zip(self, other, strict=True)))


def import_batch(
    kept: CheckpointWriter, batch: Sequence[ForeignCheckpoint]
) -> tuple[ImportCounts, list[ReadFailure]]:
    """Add what a space lacks of some checkpoints; those that cannot be stored are returned."""
    failed: list[ReadFailure] = []
    counted = ImportCounts()
    there = existing_ids(kept.uow, CHECKPOINTS, [_key(each) for each in batch])
    writes = existing_ids(kept.uow, WRITES, [key for each in batch for key in _write_keys(each)])
    for each in batch:
        try:
            counted = counted.plus(_import_checkpoint(kept, each, there, writes))
        except InvalidValue as error:
            ids = (each.thread_id, each.namespace, each.checkpoint_id)
            failed.append(ReadFailure("checkpoint " + " ".join(map(repr, ids)), str(error)))
    return counted, failed


def is_thread_here(reader: RowReader, thread_id: str) -> bool:
    """Whether a space has a thread, or has taken it over and removed it since."""
    key = thread_key(thread_id)
    if reader.select(find(LANES, {"thread": key}, limit=1)):
        return True
    return reader.get(OPERATIONS, [_mark(key)])[0] is not None


def take_over(
    kept: CheckpointWriter, thread_id: str, checkpoints: Sequence[ForeignCheckpoint]
) -> None:
    """Add a whole thread to a space that has none of it, and mark it as taken over.

    The mark stays if the thread is removed later. Raises InvalidValue, and adds nothing, if one of
    the checkpoints cannot be stored.
    """
    if is_thread_here(kept.uow, thread_id):
        return
    for each in checkpoints:
        _import_checkpoint(kept, each, set(), set())
    mark = OperationResult(operation_id=_mark(thread_key(thread_id)), at=_NEVER_PRUNED)
    kept.uow.operations.add_all([mark])


def _mark(thread: str) -> str:
    return f"taken_over_{thread}"


def _import_checkpoint(
    kept: CheckpointWriter, each: ForeignCheckpoint, there: set[str], writes: set[str]
) -> ImportCounts:
    """Import what is missing of a checkpoint and its writes."""
    is_there = _key(each) in there
    if not is_there:
        _put(kept, each)
    lacking = [
        done for key, done in zip(_write_keys(each), each.writes, strict=True) if key not in writes
    ]
    if lacking:
        kept.put_writes(each.thread_id, each.namespace, each.checkpoint_id, lacking)
    return ImportCounts(not is_there, is_there, len(lacking), len(each.writes) - len(lacking))


def _key(each: ForeignCheckpoint) -> str:
    return checkpoint_key(lane_key(each.thread_id, each.namespace), each.checkpoint_id)


def _write_keys(each: ForeignCheckpoint) -> list[str]:
    return [write_key(_key(each), done.task_id, done.number) for done in each.writes]


def _put(kept: CheckpointWriter, each: ForeignCheckpoint) -> None:
    parent = each.parent_id and kept.find(each.thread_id, each.namespace, each.parent_id)
    before = kept.values([parent])[parent.channels] if parent else {}

    def offer(version: str | float | None, value: TaggedBytes, name: str) -> ChannelValue:
        return ChannelValue(version, before.get(name) != value, lambda: value)

    kept.put(
        each.thread_id,
        each.namespace,
        each.checkpoint_id,
        parent_id=each.parent_id,
        run_id=each.run_id,
        metadata=each.metadata,
        state=each.state,
        values={name: offer(*value, name) for name, value in each.values.items()},
    )
