"""Import checkpoints of another program: missing ones are added, existing ones stay as they are.

They are imported in batches, each in its own transaction. So an import that was killed is simply
started again: it finds what it has imported, and goes on after it.
"""

from collections.abc import Iterator, Sequence
from functools import partial

from attrs import define, field

from herdbook.domain.journal import NOBODY, Actor
from herdbook.ports.checkpoint_storage import thread_operations
from herdbook.ports.checkpoint_storage.byte_lru import ByteLru
from herdbook.ports.checkpoint_storage.checkpoint_writer import CheckpointWriter
from herdbook.ports.checkpoint_storage.foreign_import import ImportCounts, import_batch
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
    with unit_of_work(store, space, actor=actor) as uow:
        result = import_batch(CheckpointWriter(uow, shelf), batch)
        if uow.changes:
            uow.commit()
    return result


def _size(uow: UnitOfWork, names: Sequence[str]) -> int:
    return sum(thread_operations.describe_thread(uow, name).sizes.bytes for name in names)
