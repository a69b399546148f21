"""Writes checkpoints to a space, storing only what changed.

Every operation here is idempotent, so a caller may simply repeat it when a connection broke.
"""

from collections.abc import Mapping, Sequence

from herdbook.domain.checkpoints.model import (
    Checkpoint,
    CheckpointLane,
    Piece,
    TaggedBytes,
    Write,
    checkpoint_key,
    encode_checkpoint_id,
    encode_text,
    lane_key,
    run_key,
    thread_key,
    write_key,
)
from herdbook.ports.checkpoint_storage.byte_lru import ByteLru
from herdbook.ports.checkpoint_storage.extents import read_extents
from herdbook.ports.checkpoint_storage.latest_checkpoint_cache import NO_CHECKPOINTS
from herdbook.ports.checkpoint_storage.value_store import (
    TABLE,
    BaseCheckpoint,
    Channel,
    ChannelValue,
    compose,
    compress,
    decode_value_table,
)
from herdbook.ports.engine.dictionary import CHECKPOINTS, LANES, PIECES, WRITES
from herdbook.ports.repositories.checkpoints import Checkpoints, KnownValues, TaskWrite
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork


class CheckpointWriter(Checkpoints):
    """The checkpoints of a unit of work's space, for reading and writing."""

    def __init__(
        self,
        uow: UnitOfWork,
        cache: ByteLru | None = None,
        latest: Mapping[str, Checkpoint] = NO_CHECKPOINTS,
    ) -> None:
        super().__init__(uow, cache, uow.space)
        self.uow = uow
        self._latest = latest

    def put(
        self,
        thread_id: str,
        namespace: str,
        checkpoint_id: str,
        *,
        parent_id: str | None = None,
        run_id: str | None = None,
        metadata: TaggedBytes,
        state: TaggedBytes,
        values: Mapping[str, ChannelValue],
        new: bool = False,
    ) -> None:
        """Store a checkpoint, replacing one with the same id.

        A value marked as unchanged is taken from the parent if that has it in this version, and
        serialized if not. A caller that knows the id to be new passes `new` and saves the lookup;
        if it is not new, AlreadyExists is raised, at the latest at the commit.
        """
        lane = lane_key(thread_id, namespace)
        thread, place = thread_key(thread_id), encode_checkpoint_id(checkpoint_id)
        parent = None if parent_id is None else encode_checkpoint_id(parent_id)
        key = checkpoint_key(lane, checkpoint_id)
        before = None if new else self.uow.get(CHECKPOINTS, [key])[0]
        base = before
        if base is None and parent_id is not None and parent_id != checkpoint_id:
            base = self._latest.get(lane)
            if base is None or base.place != parent:
                base = self.uow.get(CHECKPOINTS, [checkpoint_key(lane, parent_id)])[0]
        channels = self._compose_channels(thread, values, base)
        state_packed, data = compress(state.data, TABLE)
        row = Checkpoint(
            id=key,
            thread=thread,
            lane=lane,
            place=place,
            parent=parent,
            run=None if run_id is None else run_key(run_id),
            metadata_tag=metadata.tag,
            metadata=metadata.data,
            state_tag=state.tag,
            state=data,
            state_packed=state_packed,
            channels=channels,
        )
        if base is None and self.uow.get(LANES, [lane]) == [None]:
            names = {"thread_id": encode_text(thread_id), "namespace": encode_text(namespace)}
            self.uow.append(LANES, [CheckpointLane(id=lane, thread=thread, **names)])
        if before is not None:
            self.uow.remove(CHECKPOINTS, [before.id])
        self.uow.append(CHECKPOINTS, [row])

    def _compose_channels(
        self, thread: str, offers: Mapping[str, ChannelValue], base: Checkpoint | None
    ) -> bytes:
        """The `channels` of a checkpoint; the new parts of its values are added as a piece."""
        known = self._known_values(base) if base else None
        piece = self.uow.new_id(PIECES)
        values, fresh, written = compose(
            offers, self._base_checkpoint(known) if known else None, piece
        )
        if fresh:
            is_packed, data = compress(fresh)
            row = Piece(id=piece, thread=thread, size=len(fresh), packed=is_packed, data=data)
            self.uow.append(PIECES, [row])
            self.cache.put(piece, fresh, len(fresh))
        channels = values.encode()
        at_hand = {**known.content, **written} if known else written
        if at_hand.keys() >= offers.keys():
            if list(at_hand) != list(offers):
                at_hand = {name: at_hand[name] for name in offers}
            self.cache.put(channels, KnownValues(values, at_hand), values.size + len(channels))
        return channels

    def _known_values(self, row: Checkpoint) -> KnownValues:
        """What is known of a checkpoint's values without reading any piece."""
        known: KnownValues | None = self.cache.get_many([row.channels]).get(row.channels)
        return known or KnownValues(decode_value_table(row.channels), {})

    def _base_checkpoint(self, known: KnownValues) -> BaseCheckpoint:
        def value(channel: Channel) -> bytes:
            if channel.name in known.content:
                return known.content[channel.name].data
            cut = known.values.extent_index.cut(channel.start, channel.size)
            return read_extents(cut, self.fetch_pieces(piece for piece, _, _ in cut))

        return BaseCheckpoint(known.values, value, self.fetch_pieces)

    def put_writes(
        self,
        thread_id: str,
        namespace: str,
        checkpoint_id: str,
        writes: Sequence[TaskWrite],
        *,
        replace: bool = False,
    ) -> None:
        """Store what tasks wrote since a checkpoint, whether that exists yet or not.

        Of two writes with the same task and number the first stays, unless `replace` is set.
        """
        thread = thread_key(thread_id)
        checkpoint = checkpoint_key(lane_key(thread_id, namespace), checkpoint_id)
        rows = {}
        for done in writes:
            key = write_key(checkpoint, done.task_id, done.number)
            if replace or key not in rows:
                rows[key] = _write_row(key, thread, checkpoint, done)
        there = [row.id for row in self.uow.get(WRITES, list(rows)) if row is not None]
        if replace and there:
            self.uow.remove(WRITES, there)
            there = []
        fresh = [row for key, row in rows.items() if key not in there]
        if fresh:
            self.uow.append(WRITES, fresh)


def _write_row(key: str, thread: str, checkpoint: str, done: TaskWrite) -> Write:
    is_packed, data = compress(done.value.data)
    return Write(
        id=key,
        thread=thread,
        checkpoint=checkpoint,
        number=done.number,
        task_id=encode_text(done.task_id),
        task_path=encode_text(done.task_path),
        channel=encode_text(done.channel),
        tag=done.value.tag,
        packed=is_packed,
        data=data,
    )
