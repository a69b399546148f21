"""Finds and lists the checkpoints of a space, with their values and the writes since them.

Values are returned as tags and bytes; only the caller can interpret them. Ids are any text.
`checkpoint_writer` puts checkpoints, `thread_operations` copies, prunes and removes them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from herdbook.domain.checkpoints.model import (
    Checkpoint,
    CheckpointLane,
    TaggedBytes,
    Write,
    checkpoint_key,
    decode_checkpoint_id,
    decode_text,
    encode_checkpoint_id,
    lane_key,
    thread_key,
)
from herdbook.domain.errors import StoreDamaged
from herdbook.ports.checkpoint_storage.byte_lru import ByteLru
from herdbook.ports.checkpoint_storage.value_store import (
    ValueTable,
    decode_value_table,
    decompress,
    fetch_pieces,
)
from herdbook.ports.engine.dictionary import CHECKPOINTS, LANES, WRITES
from herdbook.ports.engine.query import Query, Range, between, find
from herdbook.ports.unit_of_work.changes import RowReader

PAGE = 50


class TaskWrite(NamedTuple):
    """What a task wrote to a channel; `number` counts its writes, or is a code for special ones."""

    task_id: str
    task_path: str
    number: int
    channel: str
    value: TaggedBytes


class CheckpointBundle(NamedTuple):
    """A checkpoint with everything that belongs to it."""

    thread_id: str
    namespace: str
    row: Checkpoint
    values: dict[str, TaggedBytes]
    writes: list[TaskWrite]

    @property
    def checkpoint_id(self) -> str:
        """Its id in its lane."""
        return decode_checkpoint_id(self.row.place)

    @property
    def parent_id(self) -> str | None:
        """The id of its parent checkpoint, where that is known."""
        return None if self.row.parent is None else decode_checkpoint_id(self.row.parent)

    @property
    def metadata(self) -> TaggedBytes:
        """Its metadata."""
        return TaggedBytes(self.row.metadata_tag, self.row.metadata)

    @property
    def state(self) -> TaggedBytes:
        """Everything of it except the metadata and the values."""
        row = self.row
        return TaggedBytes(row.state_tag, decompress(row.state, is_packed=row.state_packed))


class KnownValues(NamedTuple):
    """The values of a checkpoint, and their bytes as far as they are cached."""

    values: ValueTable
    content: dict[str, TaggedBytes]


class Checkpoints:
    """The checkpoints of a space, as a session or a unit of work reads them.

    A `cache` shared by several transactions saves reading the same pieces again.
    """

    def __init__(
        self, reader: RowReader, cache: ByteLru | None = None, place: str = "the store"
    ) -> None:
        self.reader = reader
        self.cache = cache or ByteLru(0)
        self.place = place

    def fetch_pieces(self, names: Iterable[str]) -> Mapping[str, bytes]:
        """The bytes of pieces by name; raises StoreDamaged if one is missing."""
        return fetch_pieces(self.reader, names, self.cache, self.place)

    def find(
        self, thread_id: str, namespace: str, checkpoint_id: str | None = None
    ) -> Checkpoint | None:
        """A checkpoint by its id, or the newest of its lane; None if there is none."""
        lane = lane_key(thread_id, namespace)
        if checkpoint_id is not None:
            return self.reader.get(CHECKPOINTS, [checkpoint_key(lane, checkpoint_id)])[0]
        newest = _newest_query()._replace(equals=(("lane", lane),))
        return next(iter(self.reader.select(newest)), None)

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
        """Checkpoints by descending id: of a lane, a thread or the whole space.

        Ids grow with time, so the newest come first. `checkpoint_id` selects that one alone (every
        namespace may have one), `before` leaves out that id and those above it, and `after` is the
        last one of the previous page.
        """
        if thread_id is not None and namespace is not None and before is checkpoint_id is None:
            lane = ("lane", lane_key(thread_id, namespace))
            newest = _newest_query()._replace(equals=(lane,), limit=limit)
            return self.reader.select(newest if after is None else newest.next_page(after))
        where: dict[str, Any] = {}
        if thread_id is not None and namespace is not None:
            where["lane"] = lane_key(thread_id, namespace)
        elif thread_id is not None:
            where["thread"] = thread_key(thread_id)
        if checkpoint_id is not None:
            where["place"] = Range(
                encode_checkpoint_id(checkpoint_id),
                encode_checkpoint_id(checkpoint_id),
                through=True,
            )
            if before is not None and where["place"].low >= encode_checkpoint_id(before):
                return []
        elif before is not None:
            where["place"] = between(None, encode_checkpoint_id(before))
        query: Query[Checkpoint] = find(
            CHECKPOINTS, where, by=("place",), descending=True, limit=limit, after=after
        )
        return self.reader.select(query)

    def lanes(self, rows: Iterable[Checkpoint]) -> dict[str, CheckpointLane]:
        """The lanes of checkpoints, by their keys; raises StoreDamaged if one is missing."""
        keys = list(dict.fromkeys(row.lane for row in rows))
        found = dict(zip(keys, self.reader.get(LANES, keys) if keys else (), strict=True))
        lanes = {key: lane for key, lane in found.items() if lane is not None}
        if len(lanes) < len(keys):
            raise StoreDamaged(self.place, "a checkpoint is in a lane that is not there")
        return lanes

    def writes(self, checkpoints: Iterable[str]) -> dict[str, list[TaskWrite]]:
        """What tasks wrote since checkpoints, by the checkpoints' keys, in the order of the tasks.

        Tasks are sorted by their paths and then their ids: a graph that ran without a break took
        their writes in this order too.
        """
        keys = list(checkpoints)
        found: dict[str, list[TaskWrite]] = {key: [] for key in keys}
        if len(keys) == 1:
            query = _writes_query()._replace(equals=(("checkpoint", keys[0]),))
        else:
            # The keys are digests that we computed: there is nothing to validate.
            query = _writes_query()._replace(equals=(), several=("checkpoint", tuple(found)))
        rows = self.reader.select(query) if keys else []
        for row in rows:
            found[row.checkpoint].append(_task_write(row))
        for each in found.values() if rows else ():
            each.sort(key=lambda done: (done.task_path, done.task_id, done.number))
        return found

    def values(self, rows: Iterable[Checkpoint]) -> dict[bytes, dict[str, TaggedBytes]]:
        """The values of checkpoints, by their `channels` field."""
        wanted = dict.fromkeys(row.channels for row in rows)
        found: dict[bytes, KnownValues] = self.cache.get_many(wanted)
        tables = {each: decode_value_table(each) for each in wanted if each not in found}
        pieces = self.fetch_pieces(name for table in tables.values() for name in table.pieces)
        for each, table in tables.items():
            found[each] = KnownValues(table, table.read_all(pieces))
            self.cache.put(each, found[each], table.size + len(each))
        return {each: known.content for each, known in found.items()}

    def load_bundles(
        self, rows: Sequence[Checkpoint], names: tuple[str, str] | None = None
    ) -> Iterator[CheckpointBundle]:
        """Checkpoints with their values and writes; `names` are their thread and namespace.

        Everything is read before the first bundle is yielded.
        """
        writes = self.writes(row.id for row in rows)
        values = self.values(rows)
        lanes = {} if names else self.lanes(rows)
        for row in rows:
            lane = lanes.get(row.lane)
            thread_id, namespace = (
                (decode_text(lane.thread_id), decode_text(lane.namespace))
                if lane
                else names or ("", "")
            )
            yield CheckpointBundle(thread_id, namespace, row, values[row.channels], writes[row.id])


@cache
def _newest_query() -> Query[Checkpoint]:
    """The query for the newest checkpoint of a lane, except the lane; cached for frequent use."""
    return find(CHECKPOINTS, {"lane": "-"}, by=("place",), descending=True, limit=1)


@cache
def _writes_query() -> Query[Write]:
    return find(WRITES, {"checkpoint": "-"})


def _task_write(row: Write) -> TaskWrite:
    return TaskWrite(
        decode_text(row.task_id),
        decode_text(row.task_path),
        row.number,
        decode_text(row.channel),
        TaggedBytes(row.tag, decompress(row.data, is_packed=row.packed)),
    )
