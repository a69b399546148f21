"""List, show, compare, copy, prune and remove threads of checkpoints."""

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
from herdbook.services.listing import Listing, require_limit

SHORTEST_PREFIX = 4
"""How many characters an abbreviated checkpoint id has, at least."""
MAX_SUGGESTIONS = 5
"""How many candidates an error names."""
SCAN_LIMIT = 1_000
"""How many thread names are searched for a similar one."""


class ThreadOverview(NamedTuple):
    """A thread and its newest checkpoint."""

    thread: CheckpointThread
    newest: Checkpoint


class CheckpointSummary(NamedTuple):
    """A checkpoint in a list: its namespace, its row, and the number of writes since."""

    namespace: str
    row: Checkpoint
    writes: int


class ThreadCopyResult(NamedTuple):
    """How many checkpoints were copied to a thread, and how many it had under the same ids."""

    copied: int
    kept: int


class FreedSpace(NamedTuple):
    """What was freed of a thread, and what is left of it."""

    thread_id: str
    freed: ThreadSizes
    left: ThreadSizes


def threads(uow: UnitOfWork, *, limit: int, after: str | None = None) -> Listing[ThreadOverview]:
    """A page of the threads with their sizes, ordered by their newest checkpoint, latest first."""
    require_limit(limit)
    last = None if after is None else _newest(uow, thread_key(require_threads(uow, [after])[0]))
    newest_first = find(CHECKPOINTS, by=("place",), descending=True, limit=HEAVY, after=last)
    kept, seen, found = Checkpoints(uow), set[str](), list[ThreadOverview]()
    for row in select_all(uow, newest_first):
        if row.thread in seen:
            continue
        seen.add(row.thread)
        first = _newest(uow, row.thread)
        if first is None or first.id != row.id:  # it was on a page before this one
            continue
        if len(found) == limit:
            return Listing(found, more=True)
        lane = kept.lanes([row])[row.lane]
        found.append(ThreadOverview(rows_of.describe_thread(uow, decode_text(lane.thread_id)), row))
    return Listing(found)


def _newest(uow: UnitOfWork, thread: str) -> Checkpoint | None:
    query = find(CHECKPOINTS, {"thread": thread}, by=("place",), descending=True, limit=1)
    return next(iter(uow.select(query)), None)


def list_checkpoints(
    uow: UnitOfWork,
    thread_id: str,
    *,
    namespace: str | None = None,
    limit: int,
    after: str | None = None,
) -> Listing[CheckpointSummary]:
    """A page of a thread's checkpoints, newest first, of one namespace or of all."""
    require_limit(limit)
    require_threads(uow, [thread_id])
    kept = Checkpoints(uow)
    last = None if after is None else find_checkpoint(uow, thread_id, after, namespace=namespace)
    rows = kept.page(thread_id, namespace, after=last, limit=limit)
    lanes = kept.lanes(rows)
    found = [
        CheckpointSummary(
            decode_text(lanes[row.lane].namespace),
            row,
            uow.count(find(WRITES, {"checkpoint": row.id})),
        )
        for row in rows
    ]
    if last is None and len(found) < limit:
        return Listing(found, len(found))
    if namespace is None:
        return Listing(found, uow.count(find(CHECKPOINTS, {"thread": thread_key(thread_id)})))
    lane = lane_key(thread_id, namespace)
    return Listing(found, uow.count(find(CHECKPOINTS, {"lane": lane})))


def show_checkpoint(
    uow: UnitOfWork,
    thread_id: str,
    checkpoint_id: str | None = None,
    *,
    namespace: str | None = None,
) -> CheckpointBundle:
    """A checkpoint with its values and writes: the named one, or the newest."""
    require_threads(uow, [thread_id])
    row = find_checkpoint(uow, thread_id, checkpoint_id, namespace=namespace)
    return next(Checkpoints(uow).load_bundles([row]))


def compare_checkpoints(
    uow: UnitOfWork,
    thread_id: str,
    checkpoint_id: str | None = None,
    other_id: str | None = None,
    *,
    namespace: str | None = None,
) -> tuple[CheckpointBundle, CheckpointBundle]:
    """Two checkpoints of a thread to compare, the earlier state first.

    Without a second id, the first is compared with its parent; without any, the newest is.
    """
    require_threads(uow, [thread_id])
    row = find_checkpoint(uow, thread_id, checkpoint_id, namespace=namespace)
    if other_id is not None:
        before, after = row, find_checkpoint(uow, thread_id, other_id, namespace=namespace)
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


def find_checkpoint(
    uow: UnitOfWork,
    thread_id: str,
    checkpoint_id: str | None = None,
    *,
    namespace: str | None = None,
) -> Checkpoint:
    """Find a checkpoint by its id or a prefix of it; without an id, the newest.

    The newest is that of the graph itself unless a namespace is given. Raises NotFound if there is
    none and InvalidValue if it could be several.
    """
    kept = Checkpoints(uow)
    if checkpoint_id is None:
        row = kept.find(thread_id, namespace or "")
        rows = [row] if row else kept.page(thread_id, namespace, limit=1)
    else:
        rows = kept.page(
            thread_id, namespace, checkpoint_id=checkpoint_id, limit=MAX_SUGGESTIONS + 1
        )
        if not rows and len(checkpoint_id) >= SHORTEST_PREFIX:
            where = {"thread": thread_key(thread_id)}
            if namespace is not None:
                where = {"lane": lane_key(thread_id, namespace)}
            beginning = {**where, "place": starting_with(encode_checkpoint_id(checkpoint_id))}
            rows = uow.select(find(CHECKPOINTS, beginning, limit=MAX_SUGGESTIONS + 1))
    if not rows and checkpoint_id is None:
        names = rows_of.describe_thread(uow, thread_id).namespaces
        raise NotFound("namespace", namespace or "", f"there are {', '.join(map(repr, names))}")
    if not rows:
        hint = "`herdbook checkpoint list` shows them"
        raise NotFound("checkpoint", str(checkpoint_id), hint)
    if len(rows) > 1:
        raise InvalidValue(
            "checkpoint", f"{checkpoint_id!r} could be any of {_describe_candidates(kept, rows)}"
        )
    return rows[0]


def _describe_candidates(kept: Checkpoints, rows: Sequence[Checkpoint]) -> str:
    lanes = kept.lanes(rows)
    names = sorted(
        (decode_checkpoint_id(row.place), decode_text(lanes[row.lane].namespace))
        for row in rows[:MAX_SUGGESTIONS]
    )
    shown = [f"{name} (namespace {lane!r})" if lane else name for name, lane in names]
    return ", ".join(shown) + (" and others" if len(rows) > MAX_SUGGESTIONS else "")


def copy(uow: UnitOfWork, source: str, target: str) -> ThreadCopyResult:
    """Copy a thread to another; checkpoints that exist there under the same ids stay."""
    if source == target:
        raise InvalidValue("target", "is the thread that is copied; name another one")
    require_threads(uow, [source])
    total = uow.count(find(CHECKPOINTS, {"thread": thread_key(source)}))
    copied = rows_of.copy_thread(uow, source, target)
    return ThreadCopyResult(copied, total - copied)


def prune(uow: UnitOfWork, thread_ids: Sequence[str]) -> list[FreedSpace]:
    """Remove all of the threads but the newest checkpoint of each namespace and its values."""
    return [_prune_thread(uow, thread_id) for thread_id in require_threads(uow, thread_ids)]


def _prune_thread(uow: UnitOfWork, thread_id: str) -> FreedSpace:
    before = rows_of.describe_thread(uow, thread_id).sizes
    rows_of.prune_thread(uow, thread_id)
    left = rows_of.describe_thread(uow, thread_id).sizes
    return FreedSpace(thread_id, _difference(before, left), left)


def remove(uow: UnitOfWork, thread_ids: Sequence[str]) -> list[FreedSpace]:
    """Remove threads with all their checkpoints, all or none."""
    names = require_threads(uow, thread_ids)
    found = [
        FreedSpace(each, rows_of.describe_thread(uow, each).sizes, ThreadSizes()) for each in names
    ]
    rows_of.remove_threads(uow, names)
    return found


def _difference(before: ThreadSizes, left: ThreadSizes) -> ThreadSizes:
    return ThreadSizes(*(one - other for one, other in zip(before, left, strict=True)))


def require_threads(uow: UnitOfWork, thread_ids: Sequence[str]) -> list[str]:
    """The given thread ids, each once; raises NotFound for one that does not exist.

    People choose the ids of threads, so one may be a prefix of another: abbreviations are not
    accepted.
    """
    names = list(dict.fromkeys(thread_ids))
    for name in names:
        if uow.count(find(LANES, {"thread": thread_key(name)})) == 0:
            raise NotFound("thread", name, _hint(uow, name))
    return names


def _hint(uow: UnitOfWork, name: str) -> str:
    lanes = islice(select_all(uow, find(LANES, limit=SCAN_LIMIT)), SCAN_LIMIT)
    names = list(dict.fromkeys(decode_text(lane.thread_id) for lane in lanes))
    near = [each for each in names if name and each.startswith(name)]
    near = (near or get_close_matches(name, names, n=MAX_SUGGESTIONS, cutoff=0.6))[:MAX_SUGGESTIONS]
    if near:
        return f"did you mean {', '.join(repr(each[:80]) for each in near)}?"
    if not names:
        return "there are no checkpoints here yet; `herdbook where` shows the location"
    return "`herdbook checkpoint threads` lists them"
