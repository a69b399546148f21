"""Checkpoints of a space, found and listed, with their values and what was written since.

Values come out as tags and bytes; what they mean is for the caller to know. Ids are any text.
`checkpointing` puts checkpoints, `threads` copies, prunes and removes them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from herdbook.domain.checkpoints.model import (
    Checkpoint,
    Lane,
    Typed,
    Write,
    checkpoint_key,
    id_at,
    lane_key,
    place_of,
    thread_key,
    told,
)
from herdbook.domain.errors import StoreDamaged
from herdbook.ports.checkpoint_storage.byte_lru import Shelf
from herdbook.ports.checkpoint_storage.value_store import (
    Values,
    fetched,
    read_values,
    unpacked,
)
from herdbook.ports.engine.dictionary import CHECKPOINTS, LANES, WRITES
from herdbook.ports.engine.query import Query, Range, between, find
from herdbook.ports.unit_of_work.changes import Reads

PAGE = 50


class Done(NamedTuple):
    """What a task wrote to a channel; `number` counts its writes, or stands for what they are."""

    task_id: str
    task_path: str
    number: int
    channel: str
    value: Typed


class Held(NamedTuple):
    """A checkpoint with all that belongs to it."""

    thread_id: str
    namespace: str
    row: Checkpoint
    values: dict[str, Typed]
    writes: list[Done]

    @property
    def checkpoint_id(self) -> str:
        """Its id in its lane."""
        return id_at(self.row.place)

    @property
    def parent_id(self) -> str | None:
        """The id of the checkpoint it came from, where that is known."""
        return None if self.row.parent is None else id_at(self.row.parent)

    @property
    def metadata(self) -> Typed:
        """What is said about it."""
        return Typed(self.row.metadata_tag, self.row.metadata)

    @property
    def state(self) -> Typed:
        """All that a graph keeps of it but the values."""
        row = self.row
        return Typed(row.state_tag, unpacked(row.state, is_packed=row.state_packed))


class Known(NamedTuple):
    """The values of a checkpoint, and their bytes as far as they are at hand."""

    values: Values
    content: dict[str, Typed]


class Checkpoints:
    """The checkpoints of a space, as a session or a unit of work reads them.

    A `shelf` that several transactions share saves them reading the same pieces again.
    """

    def __init__(self, read: Reads, shelf: Shelf | None = None, place: str = "the store") -> None:
        self.read = read
        self.shelf = shelf or Shelf(0)
        self.place = place

    def pieces(self, names: Iterable[str]) -> Mapping[str, bytes]:
        """The bytes of pieces by name."""
        return fetched(self.read, names, self.shelf, self.place)

    def find(
        self, thread_id: str, namespace: str, checkpoint_id: str | None = None
    ) -> Checkpoint | None:
        """A checkpoint by its id, or the newest of its lane."""
        lane = lane_key(thread_id, namespace)
        if checkpoint_id is not None:
            return self.read.get(CHECKPOINTS, [checkpoint_key(lane, checkpoint_id)])[0]
        newest = _newest()._replace(equals=(("lane", lane),))
        return next(iter(self.read.select(newest)), None)

    def page(
        self,
        thread_id: str | None = None,
        namespace: str | None = None,
        *,
        checkpoint_id: str | None = None,
        before: str | None = None,
        after: Checkpoint | None = None,
        limit: int = PAGE,
    ) -> list[Checkpoint]:
        """Checkpoints by their ids, the greatest first: of a lane, a thread or the whole space.

        Ids grow with time, so these are the newest. `checkpoint_id` asks for that one alone (every
        namespace may have one), `before` leaves out that id and those above it, and `after` is the
        last one of the page before.
        """
        if thread_id is not None and namespace is not None and before is checkpoint_id is None:
            lane = ("lane", lane_key(thread_id, namespace))
            newest = _newest()._replace(equals=(lane,), limit=limit)
            return self.read.select(newest if after is None else newest.following(after))
        where: dict[str, Any] = {}
        if thread_id is not None and namespace is not None:
            where["lane"] = lane_key(thread_id, namespace)
        elif thread_id is not None:
            where["thread"] = thread_key(thread_id)
        if checkpoint_id is not None:
            where["place"] = Range(place_of(checkpoint_id), place_of(checkpoint_id), through=True)
            if before is not None and where["place"].low >= place_of(before):
                return []
        elif before is not None:
            where["place"] = between(None, place_of(before))
        query: Query[Checkpoint] = find(
            CHECKPOINTS, where, by=("place",), descending=True, limit=limit, after=after
        )
        return self.read.select(query)

    def lanes(self, rows: Iterable[Checkpoint]) -> dict[str, Lane]:
        """The lanes of checkpoints, by their keys."""
        keys = list(dict.fromkeys(row.lane for row in rows))
        found = dict(zip(keys, self.read.get(LANES, keys) if keys else (), strict=True))
        lanes = {key: lane for key, lane in found.items() if lane is not None}
        if len(lanes) < len(keys):
            raise StoreDamaged(self.place, "a checkpoint is in a lane that is not there")
        return lanes

    def writes(self, checkpoints: Iterable[str]) -> dict[str, list[Done]]:
        """What tasks wrote since checkpoints, by the checkpoints' keys, in the order of the tasks.

        Tasks come by their paths and then their ids: a graph that ran without a break took their
        writes in this order too.
        """
        keys = list(checkpoints)
        found: dict[str, list[Done]] = {key: [] for key in keys}
        if len(keys) == 1:
            query = _since()._replace(equals=(("checkpoint", keys[0]),))
        else:
            # The keys are digests that we have made: there is nothing to check.
            query = _since()._replace(equals=(), several=("checkpoint", tuple(found)))
        rows = self.read.select(query) if keys else []
        for row in rows:
            found[row.checkpoint].append(_done(row))
        for each in found.values() if rows else ():
            each.sort(key=lambda done: (done.task_path, done.task_id, done.number))
        return found

    def values(self, rows: Iterable[Checkpoint]) -> dict[bytes, dict[str, Typed]]:
        """The values of checkpoints, by what those say of their channels."""
        said = dict.fromkeys(row.channels for row in rows)
        found: dict[bytes, Known] = self.shelf.found(said)
        tables = {each: read_values(each) for each in said if each not in found}
        pieces = self.pieces(name for table in tables.values() for name in table.pieces)
        for each, table in tables.items():
            found[each] = Known(table, table.all(pieces))
            self.shelf.put(each, found[each], table.size + len(each))
        return {each: known.content for each, known in found.items()}

    def held(
        self, rows: Sequence[Checkpoint], names: tuple[str, str] | None = None
    ) -> Iterator[Held]:
        """Checkpoints with their values and writes; `names` are their thread and namespace.

        Everything is read before the first one comes.
        """
        writes = self.writes(row.id for row in rows)
        values = self.values(rows)
        lanes = {} if names else self.lanes(rows)
        for row in rows:
            lane = lanes.get(row.lane)
            thread_id, namespace = (
                (told(lane.thread_id), told(lane.namespace)) if lane else names or ("", "")
            )
            yield Held(thread_id, namespace, row, values[row.channels], writes[row.id])


@cache
def _newest() -> Query[Checkpoint]:
    """The question for the newest checkpoint of a lane, but for the lane: asked all the time."""
    return find(CHECKPOINTS, {"lane": "-"}, by=("place",), descending=True, limit=1)


@cache
def _since() -> Query[Write]:
    return find(WRITES, {"checkpoint": "-"})


def _done(row: Write) -> Done:
    return Done(
        told(row.task_id),
        told(row.task_path),
        row.number,
        told(row.channel),
        Typed(row.tag, unpacked(row.data, is_packed=row.packed)),
    )
