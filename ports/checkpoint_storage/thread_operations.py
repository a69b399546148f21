"""Whole threads of checkpoints: which there are and how large, copied, pruned, removed.

As with single checkpoints, everything may be done twice with the same outcome.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from herdbook.domain.checkpoints.model import (
    Checkpoint,
    Lane,
    checkpoint_key,
    id_at,
    kept,
    lane_key,
    run_key,
    thread_key,
    told,
    write_key,
)
from herdbook.ports.checkpoint_storage.value_store import read_values
from herdbook.ports.engine.codec import revive
from herdbook.ports.engine.dictionary import CHECKPOINTS, LANES, PIECES, WRITES
from herdbook.ports.engine.kinds import Kind
from herdbook.ports.engine.paging import HEAVY, every
from herdbook.ports.engine.query import any_of, find
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork

RESTS_ON = "counters_since_delta_snapshot"
"""Where metadata names the channels whose values are made from the writes of ancestors."""


class Sizes(NamedTuple):
    """How much there is of a thread, in rows and in the bytes that they keep."""

    checkpoints: int = 0
    writes: int = 0
    pieces: int = 0
    bytes: int = 0
    """Of states, metadata, values and writes, as they are kept."""


class Thread(NamedTuple):
    """A thread, its namespaces, and the newest of its checkpoints."""

    thread_id: str
    namespaces: list[str]
    newest: str | None
    at: datetime | None
    sizes: Sizes


def threads(uow: UnitOfWork) -> Iterator[Thread]:
    """All threads of the space, in the order of their keys, each with its sizes."""
    seen: set[str] = set()
    for lane in every(uow, find(LANES, limit=HEAVY)):
        if lane.thread not in seen:
            seen.add(lane.thread)
            yield thread(uow, told(lane.thread_id))


def thread(uow: UnitOfWork, thread_id: str) -> Thread:
    """One thread; nothing is known of one that is not there."""
    key = thread_key(thread_id)
    lanes = uow.select(find(LANES, {"thread": key}))
    last = find(CHECKPOINTS, {"thread": key}, by=("place",), descending=True, limit=1)
    newest = next(iter(uow.select(last)), None)
    return Thread(
        thread_id,
        sorted(told(lane.namespace) for lane in lanes),
        id_at(newest.place) if newest else None,
        newest.created_at if newest else None,
        _sizes(uow, key),
    )


def _sizes(uow: UnitOfWork, key: str) -> Sizes:
    numbers: dict[str, int] = {}
    size = 0
    kinds: tuple[Kind[Any], ...] = (CHECKPOINTS, WRITES, PIECES)
    for kind in kinds:
        numbers[kind.name] = 0
        for row in _of_thread(uow, kind, key):
            numbers[kind.name] += 1
            size += sum(len(vars(row)[name]) for name in kind.raw)
    checkpoints, writes, pieces = numbers.values()
    return Sizes(checkpoints, writes, pieces, size)


def _of_thread(uow: UnitOfWork, kind: Kind[Any], key: str) -> Iterator[Any]:
    return every(uow, find(kind, {"thread": key}, limit=HEAVY))


def remove_threads(uow: UnitOfWork, thread_ids: Iterable[str]) -> int:
    """Remove threads with all that is in them; how many checkpoints that were."""
    removed = 0
    for thread_id in dict.fromkeys(thread_ids):
        key = thread_key(thread_id)
        for kind in (WRITES, PIECES, CHECKPOINTS, LANES):
            keys = [row.id for row in _of_thread(uow, kind, key)]
            removed += len(keys) if kind is CHECKPOINTS else 0
            if keys:
                uow.remove(kind, keys)
    return removed


def remove_runs(uow: UnitOfWork, run_ids: Iterable[str]) -> int:
    """Remove the checkpoints that some runs made, and what was written since; how many."""
    keys = [run_key(run_id) for run_id in dict.fromkeys(run_ids)]
    rows = [row for key in keys for row in uow.select(find(CHECKPOINTS, {"run": key}))]
    return remove(uow, rows)


def remove(uow: UnitOfWork, rows: Sequence[Checkpoint]) -> int:
    """Remove checkpoints with what was written since, and the pieces that nobody needs then.

    Checkpoints that came from a removed one stay, with all their values, and have no parent.
    """
    gone = {row.id for row in rows}
    if not gone:
        return 0
    for some in _portions(list(gone)):
        writes = [row.id for row in uow.select(find(WRITES, {"checkpoint": any_of(some)}))]
        if writes:
            uow.remove(WRITES, writes)
    uow.remove(CHECKPOINTS, list(gone))
    for thread in dict.fromkeys(row.thread for row in rows):
        left = list(_of_thread(uow, CHECKPOINTS, thread))
        orphans = [
            row
            for row in left
            if row.parent is not None and checkpoint_key(row.lane, id_at(row.parent)) in gone
        ]
        if orphans:
            uow.remove(CHECKPOINTS, [row.id for row in orphans])
            uow.adopt(
                {
                    CHECKPOINTS: [
                        revive(CHECKPOINTS, {**vars(row), "parent": None}) for row in orphans
                    ]
                }
            )
        needed = {name for row in left for name in read_values(row.channels).pieces}
        unneeded = [row.id for row in _of_thread(uow, PIECES, thread) if row.id not in needed]
        if unneeded:
            uow.remove(PIECES, unneeded)
        if not left:
            lanes = [row.id for row in _of_thread(uow, LANES, thread)]
            uow.remove(LANES, lanes)
    return len(gone)


def _portions(keys: list[str], size: int = 500) -> Iterator[list[str]]:
    return (keys[start : start + size] for start in range(0, len(keys), size))


def prune(uow: UnitOfWork, thread_id: str) -> int:
    """Remove all but the newest checkpoint of each lane of a thread; how many that were.

    Some channels keep no value at every step: theirs is made from what ancestors were written. The
    ancestors that the newest checkpoint rests on in this way stay too.
    """
    lanes: dict[str, list[Checkpoint]] = {}
    newest_first = find(
        CHECKPOINTS, {"thread": thread_key(thread_id)}, by=("place",), descending=True, limit=HEAVY
    )
    for row in every(uow, newest_first):
        lanes.setdefault(row.lane, []).append(row)
    return remove(uow, [row for rows in lanes.values() for row in _dispensable(rows)])


def _dispensable(rows: Sequence[Checkpoint]) -> list[Checkpoint]:
    """The checkpoints of a lane, given the newest first, that the newest does not need."""
    newest = rows[0]
    by_place = {row.place: row for row in rows}
    stays, current = {newest.id}, newest
    lacking = rests_on(newest) - read_values(newest.channels).channels.keys()
    while lacking and current.parent in by_place:
        current = by_place[current.parent]
        stays.add(current.id)
        lacking -= read_values(current.channels).channels.keys()
    return [row for row in rows if row.id not in stays]


def rests_on(row: Checkpoint) -> set[str]:
    """The channels whose values a checkpoint may have from what its ancestors were written."""
    if row.metadata_tag != "json":
        return set()
    metadata = json.loads(row.metadata)
    named = metadata.get(RESTS_ON) if isinstance(metadata, dict) else None
    return set(named) if isinstance(named, dict) else set()


def copy_thread(uow: UnitOfWork, source: str, target: str) -> int:
    """Copy all checkpoints and writes of a thread to another; how many checkpoints that were.

    What the other thread has under the same ids already stays as it is.
    """
    if source == target:
        return 0
    old, new = thread_key(source), thread_key(target)
    lanes = {row.id: row for row in _of_thread(uow, LANES, old)}
    moved = {key: lane_key(target, told(lane.namespace)) for key, lane in lanes.items()}
    rows = list(_of_thread(uow, CHECKPOINTS, old))
    keys = {row.id: checkpoint_key(moved[row.lane], id_at(row.place)) for row in rows}
    there = _present(uow, CHECKPOINTS, keys.values())
    fresh = [row for row in rows if keys[row.id] not in there]
    if not fresh:
        return 0
    known = _present(uow, LANES, moved.values())
    names = [
        Lane(id=moved[k], thread=new, thread_id=kept(target), namespace=lane.namespace)
        for k, lane in lanes.items()
        if moved[k] not in known
    ]
    if names:
        uow.add(LANES, names)
    pieces = _copied_pieces(uow, fresh, new)
    uow.adopt(
        {
            CHECKPOINTS: [
                revive(
                    CHECKPOINTS,
                    {
                        **vars(row),
                        "id": keys[row.id],
                        "thread": new,
                        "lane": moved[row.lane],
                        "channels": read_values(row.channels).renamed(pieces).written(),
                    },
                )
                for row in fresh
            ]
        }
    )
    _copy_writes(uow, {row.id: keys[row.id] for row in fresh}, new)
    return len(fresh)


def _present(uow: UnitOfWork, kind: Kind[Any], keys: Iterable[str]) -> set[str]:
    return {row.id for row in uow.get(kind, list(keys)) if row is not None}


def _copied_pieces(uow: UnitOfWork, rows: Sequence[Checkpoint], thread: str) -> dict[str, str]:
    """Copy the pieces of checkpoints into a thread; their new names by the old ones."""
    named = dict.fromkeys(name for row in rows for name in read_values(row.channels).pieces)
    names: dict[str, str] = {}
    for some in _portions(list(named), HEAVY):
        pieces = uow.existing(PIECES, some)
        copies = [revive(PIECES, {**vars(piece), "id": "", "thread": thread}) for piece in pieces]
        added = uow.add(PIECES, copies)
        names.update((one.id, other.id) for one, other in zip(pieces, added, strict=True))
    return names


def _copy_writes(uow: UnitOfWork, keys: dict[str, str], thread: str) -> None:
    for some in _portions(list(keys), HEAVY):
        copies = [
            revive(
                WRITES,
                {
                    **vars(row),
                    "id": write_key(keys[row.checkpoint], told(row.task_id), row.number),
                    "thread": thread,
                    "checkpoint": keys[row.checkpoint],
                },
            )
            for row in uow.select(find(WRITES, {"checkpoint": any_of(some)}))
        ]
        there = _present(uow, WRITES, (copy.id for copy in copies))
        fresh = [copy for copy in copies if copy.id not in there]
        if fresh:
            uow.add(WRITES, fresh)
