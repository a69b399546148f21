"""Import checkpoints of another program: missing ones are added, existing ones stay as they are.

They are imported in batches, each in its own transaction. So an import that was killed is simply
started again: it finds what it has imported, and goes on after it.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from attrs import define, field

from herdbook.domain.checkpoints.model import TaggedBytes, checkpoint_key, lane_key, write_key
from herdbook.domain.errors import InvalidValue
from herdbook.domain.journal import NOBODY, Actor
from herdbook.ports.checkpoint_storage import thread_operations
from herdbook.ports.checkpoint_storage.byte_lru import ByteLru
from herdbook.ports.checkpoint_storage.checkpoint_writer import CheckpointWriter
from herdbook.ports.checkpoint_storage.value_store import ChannelValue
from herdbook.ports.engine.dictionary import CHECKPOINTS, WRITES
from herdbook.ports.engine.kinds import Kind
from herdbook.ports.engine.long_work import long_work
from herdbook.ports.engine.paging import Progress, no_progress
from herdbook.ports.engine.store import Store
from herdbook.ports.unit_of_work.run import read, retry
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork, unit_of_work
from herdbook.ports.world.foreign_checkpoints import (
    CheckpointSource,
    ForeignCheckpoint,
    ReadFailure,
)

BATCH_SIZE, BATCH_BYTES = 50, 8 * 2**20
"""A batch has at most so many checkpoints, and not many more bytes than that."""
CACHE_BYTES = 64 * 2**20


class ImportCounts(NamedTuple):
    """How many checkpoints and writes were added, and how many were there already."""

    added: int = 0
    kept: int = 0
    writes_added: int = 0
    writes_kept: int = 0

    def plus(self, other: "ImportCounts") -> "ImportCounts":
        """The sum of both."""
        return ImportCounts(*(one + more for one, more in zip(self, other, strict=True)))


@define
class CheckpointImport:
    """The result of an import so far."""

    counted: ImportCounts = field(factory=ImportCounts)
    threads: dict[str, None] = field(factory=dict)
    failed: list[ReadFailure] = field(factory=list)
    bytes: int = 0


@long_work()
def import_checkpoints(
    source: CheckpointSource,
    store: Store,
    space: str,
    *,
    actor: Actor = NOBODY,
    progress: Progress = no_progress,
) -> CheckpointImport:
    """Add all checkpoints and writes of a source that a space lacks.

    Those that cannot be imported are listed in `failed` and do not stop the others. `bytes` is the
    size of the imported threads in the end.
    """
    result, shelf, done = CheckpointImport(), ByteLru(CACHE_BYTES), 0
    for batch in _batches(source):
        fresh = [each for each in batch if isinstance(each, ForeignCheckpoint)]
        result.failed += [each for each in batch if isinstance(each, ReadFailure)]
        attempt = partial(_import_batch, store, space, fresh, shelf, actor)
        counted, failed = retry(attempt, store.patience)
        result.counted = result.counted.plus(counted)
        result.failed += failed
        result.threads.update(dict.fromkeys(each.thread_id for each in fresh))
        done += len(batch)
        progress(space, min(done, source.total - 1), source.total)
    result.bytes = read(store, space, _size, list(result.threads))
    progress(space, source.total, source.total)
    return result


def _batches(source: CheckpointSource) -> Iterator[list[ForeignCheckpoint | ReadFailure]]:
    batch: list[ForeignCheckpoint | ReadFailure] = []
    weight = 0
    for each in source.checkpoints():
        batch.append(each)
        weight += each.size if isinstance(each, ForeignCheckpoint) else 0
        if len(batch) >= BATCH_SIZE or weight >= BATCH_BYTES:
            yield batch
            batch, weight = [], 0
    if batch:
        yield batch


def _import_batch(
    store: Store, space: str, batch: Sequence[ForeignCheckpoint], shelf: ByteLru, actor: Actor
) -> tuple[ImportCounts, list[ReadFailure]]:
    """Import a batch in one transaction; idempotent."""
    failed: list[ReadFailure] = []
    counted = ImportCounts()
    with unit_of_work(store, space, actor=actor) as uow:
        kept = CheckpointWriter(uow, shelf)
        there = _existing_ids(uow, CHECKPOINTS, [_key(each) for each in batch])
        writes = _existing_ids(uow, WRITES, [key for each in batch for key in _write_keys(each)])
        for each in batch:
            try:
                counted = counted.plus(_import_checkpoint(kept, each, there, writes))
            except InvalidValue as error:
                ids = (each.thread_id, each.namespace, each.checkpoint_id)
                failed.append(ReadFailure("checkpoint " + " ".join(map(repr, ids)), str(error)))
        if uow.changes:
            uow.commit()
    return counted, failed


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


def _existing_ids(uow: UnitOfWork, kind: Kind[Any], keys: list[str]) -> set[str]:
    return {row.id for row in uow.get(kind, keys) if row is not None} if keys else set()


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


def _size(uow: UnitOfWork, names: Sequence[str]) -> int:
    return sum(thread_operations.describe_thread(uow, name).sizes.bytes for name in names)
