"""Checkpoints to look at and to tidy up: threads, what they hold, copying, pruning, removing."""

from collections.abc import Sequence
from difflib import get_close_matches
from itertools import islice
from typing import NamedTuple

from herdbook.domain.checkpoints.model import (
    Checkpoint,
    decode_checkpoint_id,
    decode_text,
    encode_checkpoint_id,
    lane_key,
    thread_key,
)
from herdbook.domain.errors import InvalidValue, NotFound
from herdbook.ports.checkpoint_storage import thread_operations as rows_of
from herdbook.ports.checkpoint_storage.thread_operations import CheckpointThread, ThreadSizes
from herdbook.ports.engine.dictionary import CHECKPOINTS, LANES, WRITES
from herdbook.ports.engine.paging import HEAVY, select_all
from herdbook.ports.engine.query import find, starting_with
from herdbook.ports.repositories.checkpoints import CheckpointBundle, Checkpoints
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork

SHORTEST = 4
"""How many characters of a checkpoint's id must be given, at least."""
MANY = 5
"""How many of the things that somebody could have meant are named."""
LOOKED_AT = 1_000
"""How many names are looked at for one that somebody could have meant."""


class Overview(NamedTuple):
    """A thread of a list, and the newest of its checkpoints."""

    thread: CheckpointThread
    newest: Checkpoint


class Listed(NamedTuple):
    """A checkpoint of a list: where it is, its row, and how much has been written since."""

    namespace: str
    row: Checkpoint
    writes: int


class Copied(NamedTuple):
    """How many checkpoints came to a thread, and how many it had under the same ids."""

    copied: int
    kept: int


class Freed(NamedTuple):
    """What a thread has lost, and what is left of it."""

    thread_id: str
    freed: ThreadSizes
    left: ThreadSizes


def threads(uow: UnitOfWork, *, limit: int, after: str | None = None) -> list[Overview]:
    """A page of the threads, those whose newest checkpoint is youngest first, with their sizes."""
    _refuse_limit(limit)
    last = None if after is None else _newest(uow, thread_key(known(uow, [after])[0]))
    newest_first = find(CHECKPOINTS, by=("place",), descending=True, limit=HEAVY, after=last)
    kept, seen, found = Checkpoints(uow), set[str](), list[Overview]()
    for row in select_all(uow, newest_first):
        if row.thread in seen:
            continue
        seen.add(row.thread)
        first = _newest(uow, row.thread)
        if first is not None and first.id == row.id:  # else it was on a page before this one
            lane = kept.lanes([row])[row.lane]
            found.append(Overview(rows_of.describe_thread(uow, decode_text(lane.thread_id)), row))
            if len(found) == limit:
                break
    return found


def _newest(uow: UnitOfWork, thread: str) -> Checkpoint | None:
    query = find(CHECKPOINTS, {"thread": thread}, by=("place",), descending=True, limit=1)
    return next(iter(uow.select(query)), None)


def listed(
    uow: UnitOfWork,
    thread_id: str,
    *,
    namespace: str | None = None,
    limit: int,
    after: str | None = None,
) -> list[Listed]:
    """A page of a thread's checkpoints, the newest first: of one namespace, or of all."""
    _refuse_limit(limit)
    known(uow, [thread_id])
    kept = Checkpoints(uow)
    last = None if after is None else chosen(uow, thread_id, after, namespace=namespace)
    rows = kept.page(thread_id, namespace, after=last, limit=limit)
    lanes = kept.lanes(rows)
    return [
        Listed(
            decode_text(lanes[row.lane].namespace),
            row,
            uow.count(find(WRITES, {"checkpoint": row.id})),
        )
        for row in rows
    ]


def shown(
    uow: UnitOfWork,
    thread_id: str,
    checkpoint_id: str | None = None,
    *,
    namespace: str | None = None,
) -> CheckpointBundle:
    """A checkpoint with all that belongs to it: the one named, or the newest of its lane."""
    known(uow, [thread_id])
    row = chosen(uow, thread_id, checkpoint_id, namespace=namespace)
    return next(Checkpoints(uow).load_bundles([row]))


def compared(
    uow: UnitOfWork,
    thread_id: str,
    checkpoint_id: str | None = None,
    other_id: str | None = None,
    *,
    namespace: str | None = None,
) -> tuple[CheckpointBundle, CheckpointBundle]:
    """Two checkpoints of a thread, the one to start from first.

    Without a second one, the first is compared with the one it came from, and without any the
    newest is.
    """
    known(uow, [thread_id])
    row = chosen(uow, thread_id, checkpoint_id, namespace=namespace)
    if other_id is not None:
        before, after = row, chosen(uow, thread_id, other_id, namespace=namespace)
    else:
        before, after = _parent(uow, thread_id, row), row
    one, *rest = Checkpoints(uow).load_bundles(
        [before] if before.id == after.id else [before, after]
    )
    return one, rest[0] if rest else one


def _parent(uow: UnitOfWork, thread_id: str, row: Checkpoint) -> Checkpoint:
    lane = Checkpoints(uow).lanes([row])[row.lane]
    parent = None if row.parent is None else decode_checkpoint_id(row.parent)
    found = parent and Checkpoints(uow).find(thread_id, decode_text(lane.namespace), parent)
    if not found:
        name = decode_checkpoint_id(row.place)
        reason = f"{name} came from none that is kept; name another one beside it"
        raise InvalidValue("checkpoint", reason)
    return found


def chosen(
    uow: UnitOfWork,
    thread_id: str,
    checkpoint_id: str | None = None,
    *,
    namespace: str | None = None,
) -> Checkpoint:
    """The checkpoint somebody means: by its id, by a beginning of it, or the newest.

    The newest is that of the graph itself unless a namespace is named. NotFound where there is
    none; InvalidValue where it could be several.
    """
    kept = Checkpoints(uow)
    if checkpoint_id is None:
        row = kept.find(thread_id, namespace or "")
        rows = [row] if row else kept.page(thread_id, namespace, limit=1)
    else:
        rows = kept.page(thread_id, namespace, checkpoint_id=checkpoint_id, limit=MANY + 1)
        if not rows and len(checkpoint_id) >= SHORTEST:
            where = {"thread": thread_key(thread_id)}
            if namespace is not None:
                where = {"lane": lane_key(thread_id, namespace)}
            beginning = {**where, "place": starting_with(encode_checkpoint_id(checkpoint_id))}
            rows = uow.select(find(CHECKPOINTS, beginning, limit=MANY + 1))
    if not rows and checkpoint_id is None:
        names = rows_of.describe_thread(uow, thread_id).namespaces
        raise NotFound("namespace", namespace or "", f"there are {', '.join(map(repr, names))}")
    if not rows:
        hint = "`herdbook checkpoint list` tells which there are"
        raise NotFound("checkpoint", str(checkpoint_id), hint)
    if len(rows) > 1:
        raise InvalidValue("checkpoint", f"{checkpoint_id!r} could be any of {_choice(kept, rows)}")
    return rows[0]


def _choice(kept: Checkpoints, rows: Sequence[Checkpoint]) -> str:
    lanes = kept.lanes(rows)
    names = sorted(
        (decode_checkpoint_id(row.place), decode_text(lanes[row.lane].namespace))
        for row in rows[:MANY]
    )
    said = [f"{name} (namespace {lane!r})" if lane else name for name, lane in names]
    return ", ".join(said) + (" and others" if len(rows) > MANY else "")


def copy(uow: UnitOfWork, source: str, target: str) -> Copied:
    """Copy a thread to another one; what that has under the same ids stays as it is."""
    if source == target:
        raise InvalidValue("target", "is the thread that is copied; name another one")
    known(uow, [source])
    total = uow.count(find(CHECKPOINTS, {"thread": thread_key(source)}))
    copied = rows_of.copy_thread(uow, source, target)
    return Copied(copied, total - copied)


def prune(uow: UnitOfWork, thread_ids: Sequence[str]) -> list[Freed]:
    """Keep of threads the newest checkpoint of each namespace, and what that rests on."""
    return [_pruned(uow, thread_id) for thread_id in known(uow, thread_ids)]


def _pruned(uow: UnitOfWork, thread_id: str) -> Freed:
    before = rows_of.describe_thread(uow, thread_id).sizes
    rows_of.prune_thread(uow, thread_id)
    left = rows_of.describe_thread(uow, thread_id).sizes
    return Freed(thread_id, _less(before, left), left)


def remove(uow: UnitOfWork, thread_ids: Sequence[str]) -> list[Freed]:
    """Remove threads with all that is in them, all or none."""
    names = known(uow, thread_ids)
    found = [Freed(each, rows_of.describe_thread(uow, each).sizes, ThreadSizes()) for each in names]
    rows_of.remove_threads(uow, names)
    return found


def _less(before: ThreadSizes, left: ThreadSizes) -> ThreadSizes:
    return ThreadSizes(*(one - other for one, other in zip(before, left, strict=True)))


def known(uow: UnitOfWork, thread_ids: Sequence[str]) -> list[str]:
    """Threads by their whole ids, each once; NotFound if one is not there.

    People choose the ids of threads, so that one may well be the beginning of another: none is
    ever guessed.
    """
    names = list(dict.fromkeys(thread_ids))
    for name in names:
        if uow.count(find(LANES, {"thread": thread_key(name)})) == 0:
            raise NotFound("thread", name, _hint(uow, name))
    return names


def _hint(uow: UnitOfWork, name: str) -> str:
    lanes = islice(select_all(uow, find(LANES, limit=LOOKED_AT)), LOOKED_AT)
    names = list(dict.fromkeys(decode_text(lane.thread_id) for lane in lanes))
    near = [each for each in names if name and each.startswith(name)]
    near = (near or get_close_matches(name, names, n=MANY, cutoff=0.6))[:MANY]
    if near:
        return f"did you mean {', '.join(repr(each[:80]) for each in near)}?"
    if not names:
        return "no checkpoints are kept here yet; `herdbook where` tells where that is"
    return "`herdbook checkpoint threads` tells which there are"


def _refuse_limit(limit: int) -> None:
    if limit < 1:
        raise InvalidValue("limit", f"must be at least 1, is {limit}")
