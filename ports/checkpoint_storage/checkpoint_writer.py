"""Checkpoints put into a space, in as little room as they need.

Everything here may be done twice with the same outcome, so whoever calls it may simply ask again
when a connection broke.
"""

from collections.abc import Mapping, Sequence

from herdbook.domain.checkpoints.model import (
    Checkpoint,
    Lane,
    Piece,
    Typed,
    Write,
    checkpoint_key,
    kept,
    lane_key,
    place_of,
    run_key,
    thread_key,
    write_key,
)
from herdbook.ports.checkpoint_storage.byte_lru import Shelf
from herdbook.ports.checkpoint_storage.extents import bytes_of
from herdbook.ports.checkpoint_storage.latest_checkpoint_cache import NOTHING
from herdbook.ports.checkpoint_storage.value_store import (
    TABLE,
    Base,
    Channel,
    Offer,
    compose,
    packed,
    read_values,
)
from herdbook.ports.engine.dictionary import CHECKPOINTS, LANES, PIECES, WRITES
from herdbook.ports.repositories.checkpoints import Checkpoints, Done, Known
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork


class Keeping(Checkpoints):
    """The checkpoints of a unit of work's space, to be added to."""

    def __init__(
        self,
        uow: UnitOfWork,
        shelf: Shelf | None = None,
        recent: Mapping[str, Checkpoint] = NOTHING,
    ) -> None:
        super().__init__(uow, shelf, uow.space)
        self.uow = uow
        self._recent = recent

    def put(
        self,
        thread_id: str,
        namespace: str,
        checkpoint_id: str,
        *,
        parent_id: str | None = None,
        run_id: str | None = None,
        metadata: Typed,
        state: Typed,
        values: Mapping[str, Offer],
        new: bool = False,
    ) -> None:
        """Keep a checkpoint, in the place of one with the same id.

        A value that is offered as unchanged is taken over from the parent if that has it in this
        version, and from the offer if not. Who knows that the id is new may say so, and need not
        wait for it to be looked for; AlreadyExists, at the latest at the commit, if it is not.
        """
        lane = lane_key(thread_id, namespace)
        thread, place = thread_key(thread_id), place_of(checkpoint_id)
        parent = None if parent_id is None else place_of(parent_id)
        key = checkpoint_key(lane, checkpoint_id)
        before = None if new else self.uow.get(CHECKPOINTS, [key])[0]
        base = before
        if base is None and parent_id is not None and parent_id != checkpoint_id:
            base = self._recent.get(lane)
            if base is None or base.place != parent:
                base = self.uow.get(CHECKPOINTS, [checkpoint_key(lane, parent_id)])[0]
        channels = self._composed(thread, values, base)
        state_packed, data = packed(state.data, TABLE)
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
            names = {"thread_id": kept(thread_id), "namespace": kept(namespace)}
            self.uow.append(LANES, [Lane(id=lane, thread=thread, **names)])
        if before is not None:
            self.uow.remove(CHECKPOINTS, [before.id])
        self.uow.append(CHECKPOINTS, [row])

    def _composed(self, thread: str, offers: Mapping[str, Offer], base: Checkpoint | None) -> bytes:
        """What a checkpoint says of its channels; what is new of their values has been added."""
        known = self._known(base) if base else None
        piece = self.uow.new_id(PIECES)
        values, fresh, written = compose(offers, self._base(known) if known else None, piece)
        if fresh:
            is_packed, data = packed(fresh)
            row = Piece(id=piece, thread=thread, size=len(fresh), packed=is_packed, data=data)
            self.uow.append(PIECES, [row])
            self.shelf.put(piece, fresh, len(fresh))
        channels = values.written()
        at_hand = {**known.content, **written} if known else written
        if at_hand.keys() >= offers.keys():
            if list(at_hand) != list(offers):
                at_hand = {name: at_hand[name] for name in offers}
            self.shelf.put(channels, Known(values, at_hand), values.size + len(channels))
        return channels

    def _known(self, row: Checkpoint) -> Known:
        """What is known of a checkpoint's values without reading any."""
        known: Known | None = self.shelf.found([row.channels]).get(row.channels)
        return known or Known(read_values(row.channels), {})

    def _base(self, known: Known) -> Base:
        def value(channel: Channel) -> bytes:
            if channel.name in known.content:
                return known.content[channel.name].data
            cut = known.values.stretch.cut(channel.start, channel.size)
            return bytes_of(cut, self.pieces(piece for piece, _, _ in cut))

        return Base(known.values, value, self.pieces)

    def put_writes(
        self,
        thread_id: str,
        namespace: str,
        checkpoint_id: str,
        writes: Sequence[Done],
        *,
        replace: bool = False,
    ) -> None:
        """Keep what tasks wrote since a checkpoint, be it there yet or not.

        Of two writes with the same task and number the first stays, unless `replace` is set.
        """
        thread = thread_key(thread_id)
        checkpoint = checkpoint_key(lane_key(thread_id, namespace), checkpoint_id)
        rows = {}
        for done in writes:
            key = write_key(checkpoint, done.task_id, done.number)
            if replace or key not in rows:
                rows[key] = _written(key, thread, checkpoint, done)
        there = [row.id for row in self.uow.get(WRITES, list(rows)) if row is not None]
        if replace and there:
            self.uow.remove(WRITES, there)
            there = []
        fresh = [row for key, row in rows.items() if key not in there]
        if fresh:
            self.uow.append(WRITES, fresh)


def _written(key: str, thread: str, checkpoint: str, done: Done) -> Write:
    is_packed, data = packed(done.value.data)
    return Write(
        id=key,
        thread=thread,
        checkpoint=checkpoint,
        number=done.number,
        task_id=kept(done.task_id),
        task_path=kept(done.task_path),
        channel=kept(done.channel),
        tag=done.value.tag,
        packed=is_packed,
        data=data,
    )
