"""Operations on whole threads of checkpoints: list, measure, copy, prune, remove.

As with single checkpoints, every operation is idempotent.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from herdbook.domain.checkpoints.model import (
    Checkpoint,
    CheckpointLane,
    checkpoint_key,
    decode_checkpoint_id,
    decode_text,
    encode_text,
    lane_key,
    run_key,
    thread_key,
    write_key,
)
from herdbook.ports.checkpoint_storage.value_store import decode_value_table
from herdbook.ports.engine.codec import construct_unchecked
from herdbook.ports.engine.dictionary import CHECKPOINTS, LANES, PIECES, WRITES
from herdbook.ports.engine.kinds import Kind
from herdbook.ports.engine.paging import HEAVY, chunks, select_all
from herdbook.ports.engine.query import any_of, find
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork

KEYS_PER_QUERY = 500
DELTA_COUNTERS = "counters_since_delta_snapshot"
"""The metadata key that names the channels whose values are rebuilt from ancestors' writes."""


class ThreadSizes(NamedTuple):
    """The size of a thread, in rows and in stored bytes."""

    checkpoints: int = 0
    writes: int = 0
    pieces: int = 0
    bytes: int = 0
    """Of states, metadata, values and writes, as they are stored."""


class CheckpointThread(NamedTuple):
    """A thread, its namespaces, and its newest checkpoint."""

    thread_id: str
    namespaces: list[str]
    newest: str | None
    at: datetime | None
    sizes: ThreadSizes


def describe_thread(uow: UnitOfWork, thread_id: str) -> CheckpointThread:
    """One thread; one that does not exist has no namespaces and no checkpoint."""
    key = thread_key(thread_id)
    lanes = uow.select(find(LANES, {"thread": key}))
    last = find(CHECKPOINTS, {"thread": key}, by=("place",), descending=True, limit=1)
    newest = next(iter(uow.select(last)), None)
    return CheckpointThread(
        thread_id,
        sorted(decode_text(lane.namespace) for lane in lanes),
        decode_checkpoint_id(newest.place) if newest else None,
        newest.created_at if newest else None,
        _measure(uow, key),
    )


def _measure(uow: UnitOfWork, key: str) -> ThreadSizes:
    numbers: dict[str, int] = {}
    size = 0
    kinds: tuple[Kind[Any], ...] = (CHECKPOINTS, WRITES, PIECES)
    for kind in kinds:
        numbers[kind.name] = 0
        for row in _rows_of_thread(uow, kind, key):
            numbers[kind.name] += 1
            size += sum(len(vars(row)[name]) for name in kind.bytes_fields)
    checkpoints, writes, pieces = numbers.values()
    return ThreadSizes(checkpoints, writes, pieces, size)


def _rows_of_thread(uow: UnitOfWork, kind: Kind[Any], key: str) -> Iterator[Any]:
    return select_all(uow, find(kind, {"thread": key}, limit=HEAVY))


def remove_threads(uow: UnitOfWork, thread_ids: Iterable[str]) -> int:
    """Remove threads with everything in them; return how many checkpoints were removed."""
    removed = 0
    for thread_id in dict.fromkeys(thread_ids):
        key = thread_key(thread_id)
        for kind in (WRITES, PIECES, CHECKPOINTS, LANES):
            keys = [row.id for row in _rows_of_thread(uow, kind, key)]
            removed += len(keys) if kind is CHECKPOINTS else 0
            uow.remove(kind, keys)
    return removed


def remove_runs(uow: UnitOfWork, run_ids: Iterable[str]) -> int:
    """Remove the checkpoints of some runs, and the writes since them; return how many."""
    keys = [run_key(run_id) for run_id in dict.fromkeys(run_ids)]
    rows = [row for key in keys for row in uow.select(find(CHECKPOINTS, {"run": key}))]
    return remove_checkpoints(uow, rows)


def remove_checkpoints(uow: UnitOfWork, rows: Sequence[Checkpoint]) -> int:
    """Remove checkpoints with the writes since them, and the pieces that nothing needs any more.

    Checkpoints whose parent is removed stay, with all their values, and have no parent.
    """
    gone = {row.id for row in rows}
    if not gone:
        return 0
    for some in chunks(gone, KEYS_PER_QUERY):
        writes = uow.select(find(WRITES, {"checkpoint": any_of(some)}))
        uow.remove(WRITES, [row.id for row in writes])
    uow.remove(CHECKPOINTS, list(gone))
    for thread in dict.fromkeys(row.thread for row in rows):
        left = list(_rows_of_thread(uow, CHECKPOINTS, thread))
        orphans = [
            row
            for row in left
            if row.parent is not None
            and checkpoint_key(row.lane, decode_checkpoint_id(row.parent)) in gone
        ]
        if orphans:
            uow.remove(CHECKPOINTS, [row.id for row in orphans])
            uow.insert_verbatim(
                {
                    CHECKPOINTS: [
                        construct_unchecked(CHECKPOINTS, {**vars(row), "parent": None})
                        for row in orphans
                    ]
                }
            )
        needed = {name for row in left for name in decode_value_table(row.channels).pieces}
        unneeded = [row.id for row in _rows_of_thread(uow, PIECES, thread) if row.id not in needed]
        uow.remove(PIECES, unneeded)
        if not left:
            lanes = [row.id for row in _rows_of_thread(uow, LANES, thread)]
            uow.remove(LANES, lanes)
    return len(gone)


def prune_thread(uow: UnitOfWork, thread_id: str) -> int:
    """Remove all but the newest checkpoint of each lane of a thread; return how many were removed.

    Some channels store no value at every step: theirs is rebuilt from the writes of ancestors. The
    ancestors that the newest checkpoint needs for this stay too.
    """
    lanes: dict[str, list[Checkpoint]] = {}
    newest_first = find(
        CHECKPOINTS, {"thread": thread_key(thread_id)}, by=("place",), descending=True, limit=HEAVY
    )
    for row in select_all(uow, newest_first):
        lanes.setdefault(row.lane, []).append(row)
    return remove_checkpoints(uow, [row for rows in lanes.values() for row in _unneeded_rows(rows)])


def _unneeded_rows(rows: Sequence[Checkpoint]) -> list[Checkpoint]:
    """The checkpoints of a lane, given the newest first, that the newest does not need."""
    newest = rows[0]
    by_place = {row.place: row for row in rows}
    stays, current = {newest.id}, newest
    lacking = channels_from_ancestors(newest) - decode_value_table(newest.channels).channels.keys()
    while lacking and current.parent in by_place:
        current = by_place[current.parent]
        stays.add(current.id)
        lacking -= decode_value_table(current.channels).channels.keys()
    return [row for row in rows if row.id not in stays]


def channels_from_ancestors(row: Checkpoint) -> set[str]:
    """The channels whose values a checkpoint may rebuild from its ancestors' writes."""
    if row.metadata_tag != "json":
        return set()
    metadata = json.loads(row.metadata)
    named = metadata.get(DELTA_COUNTERS) if isinstance(metadata, dict) else None
    return set(named) if isinstance(named, dict) else set()


def copy_thread(uow: UnitOfWork, source: str, target: str) -> int:
    """Copy all checkpoints and writes of a thread to another; return how many checkpoints.

    What the other thread already has under the same ids stays as it is.
    """
    if source == target:
        return 0
    old, new = thread_key(source), thread_key(target)
    lanes = {row.id: row for row in _rows_of_thread(uow, LANES, old)}
    moved = {key: lane_key(target, decode_text(lane.namespace)) for key, lane in lanes.items()}
    rows = list(_rows_of_thread(uow, CHECKPOINTS, old))
    keys = {
        row.id: checkpoint_key(moved[row.lane], decode_checkpoint_id(row.place)) for row in rows
    }
    there = existing_ids(uow, CHECKPOINTS, keys.values())
    fresh = [row for row in rows if keys[row.id] not in there]
    if not fresh:
        return 0
    known = existing_ids(uow, LANES, moved.values())
    names = [
        CheckpointLane(
            id=moved[k], thread=new, thread_id=encode_text(target), namespace=lane.namespace
        )
        for k, lane in lanes.items()
        if moved[k] not in known
    ]
    uow.add(LANES, names)
    pieces = _copy_pieces(uow, fresh, new)
    uow.insert_verbatim(
        {
            CHECKPOINTS: [
                construct_unchecked(
                    CHECKPOINTS,
                    {
                        **vars(row),
                        "id": keys[row.id],
                        "thread": new,
                        "lane": moved[row.lane],
                        "channels": decode_value_table(row.channels).rename_pieces(pieces).encode(),
                    },
                )
                for row in fresh
            ]
        }
    )
    _copy_writes(uow, {row.id: keys[row.id] for row in fresh}, new)
    return len(fresh)


def existing_ids(uow: UnitOfWork, kind: Kind[Any], keys: Iterable[str]) -> set[str]:
    """Those of these keys that rows have."""
    return {row.id for row in uow.get(kind, list(keys)) if row is not None}


def _copy_pieces(uow: UnitOfWork, rows: Sequence[Checkpoint], thread: str) -> dict[str, str]:
    """Copy the pieces of checkpoints into a thread; return their new names by the old ones."""
    named = dict.fromkeys(name for row in rows for name in decode_value_table(row.channels).pieces)
    names: dict[str, str] = {}
    for some in chunks(named, HEAVY):
        pieces = uow.get_existing(PIECES, some)
        copies = [
            construct_unchecked(PIECES, {**vars(piece), "id": "", "thread": thread})
            for piece in pieces
        ]
        added = uow.add(PIECES, copies)
        names.update((one.id, other.id) for one, other in zip(pieces, added, strict=True))
    return names


def _copy_writes(uow: UnitOfWork, keys: dict[str, str], thread: str) -> None:
    for some in chunks(keys, HEAVY):
        copies = [
            construct_unchecked(
                WRITES,
                {
                    **vars(row),
                    "id": write_key(keys[row.checkpoint], decode_text(row.task_id), row.number),
                    "thread": thread,
                    "checkpoint": keys[row.checkpoint],
                },
            )
            for row in uow.select(find(WRITES, {"checkpoint": any_of(some)}))
        ]
        there = existing_ids(uow, WRITES, (copy.id for copy in copies))
        uow.add(WRITES, [copy for copy in copies if copy.id not in there])
