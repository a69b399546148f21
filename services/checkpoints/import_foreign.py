"""Taking over checkpoints that somebody else has kept: what is lacking comes, what is there stays.

They come a few at a time, each portion in a transaction of its own. So an import that was killed is
simply begun again: it finds what it had brought, and goes on behind it.
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

PORTION, HEAVIEST = 50, 8 * 2**20
"""A portion has at most so many checkpoints, and not many more bytes than that."""
ROOM = 64 * 2**20


class Counted(NamedTuple):
    """How many checkpoints and writes came, and how many were there already."""

    added: int = 0
    kept: int = 0
    writes_added: int = 0
    writes_kept: int = 0

    def plus(self, other: "Counted") -> "Counted":
        """Both together."""
        return Counted(*(one + more for one, more in zip(self, other, strict=True)))


@define
class Taken:
    """What has come of an import so far."""

    counted: Counted = field(factory=Counted)
    threads: dict[str, None] = field(factory=dict)
    failed: list[ReadFailure] = field(factory=list)
    bytes: int = 0


@long_work()
def take_over(
    source: CheckpointSource,
    store: Store,
    space: str,
    *,
    actor: Actor = NOBODY,
    progress: Progress = no_progress,
) -> Taken:
    """Bring all checkpoints and writes of a source into a space, those that it lacks.

    What cannot come is told one by one and holds up nothing else. `bytes` is what the threads take
    here in the end.
    """
    taken, shelf, done = Taken(), ByteLru(ROOM), 0
    for portion in _portions(source):
        fresh = [each for each in portion if isinstance(each, ForeignCheckpoint)]
        taken.failed += [each for each in portion if isinstance(each, ReadFailure)]
        bring = partial(_bring, store, space, fresh, shelf, actor)
        counted, failed = retry(bring, store.patience)
        taken.counted = taken.counted.plus(counted)
        taken.failed += failed
        taken.threads.update(dict.fromkeys(each.thread_id for each in fresh))
        done += len(portion)
        progress(space, min(done, source.total - 1), source.total)
    taken.bytes = read(store, space, _size, list(taken.threads))
    progress(space, source.total, source.total)
    return taken


def _portions(source: CheckpointSource) -> Iterator[list[ForeignCheckpoint | ReadFailure]]:
    portion: list[ForeignCheckpoint | ReadFailure] = []
    weight = 0
    for each in source.checkpoints():
        portion.append(each)
        weight += each.size if isinstance(each, ForeignCheckpoint) else 0
        if len(portion) >= PORTION or weight >= HEAVIEST:
            yield portion
            portion, weight = [], 0
    if portion:
        yield portion


def _bring(
    store: Store, space: str, portion: Sequence[ForeignCheckpoint], shelf: ByteLru, actor: Actor
) -> tuple[Counted, list[ReadFailure]]:
    """Bring a portion in one transaction; done twice it is done once."""
    failed: list[ReadFailure] = []
    counted = Counted()
    with unit_of_work(store, space, actor=actor) as uow:
        kept = CheckpointWriter(uow, shelf)
        there = _there(uow, CHECKPOINTS, [_key(each) for each in portion])
        writes = _there(uow, WRITES, [key for each in portion for key in _write_keys(each)])
        for each in portion:
            try:
                counted = counted.plus(_one(kept, each, there, writes))
            except InvalidValue as error:
                ids = (each.thread_id, each.namespace, each.checkpoint_id)
                failed.append(ReadFailure("checkpoint " + " ".join(map(repr, ids)), str(error)))
        if uow.changes:
            uow.commit()
    return counted, failed


def _one(
    kept: CheckpointWriter, each: ForeignCheckpoint, there: set[str], writes: set[str]
) -> Counted:
    """Bring a checkpoint and its writes, as far as they are not there."""
    is_there = _key(each) in there
    if not is_there:
        _put(kept, each)
    lacking = [
        done for key, done in zip(_write_keys(each), each.writes, strict=True) if key not in writes
    ]
    if lacking:
        kept.put_writes(each.thread_id, each.namespace, each.checkpoint_id, lacking)
    return Counted(not is_there, is_there, len(lacking), len(each.writes) - len(lacking))


def _there(uow: UnitOfWork, kind: Kind[Any], keys: list[str]) -> set[str]:
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
