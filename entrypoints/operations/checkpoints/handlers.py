"""Checkpoints: `checkpoint threads|list|show|diff|copy|prune|rm`.

Nothing here needs LangGraph, and no object of a checkpoint is ever constructed: values are shown as
plain data.
"""

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any, NotRequired, TypedDict

from herdbook.adapters.langgraph.preview import is_opaque, preview
from herdbook.domain.checkpoints.model import Checkpoint, TaggedBytes, decode_checkpoint_id
from herdbook.domain.checkpoints.preview import Difference, differences, preview_bytes
from herdbook.domain.errors import NotFound
from herdbook.domain.location.areas import Area
from herdbook.entrypoints.context import AppContext
from herdbook.entrypoints.operations.checkpoints.preview import as_json
from herdbook.ports.checkpoint_storage.thread_operations import ThreadSizes
from herdbook.ports.checkpoint_storage.value_store import decode_value_table, decompress
from herdbook.ports.repositories.checkpoints import CheckpointBundle
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork, unit_of_work
from herdbook.services.checkpoints import threads as checkpoints_threads

AREA = Area.CHECKPOINTS


class ThreadAnswer(TypedDict):
    """A thread with its size, and when its newest checkpoint was made."""

    thread_id: str
    namespaces: list[str]
    newest: str | None
    at: str
    checkpoints: int
    writes: int
    pieces: int
    bytes: int


class CheckpointAnswer(TypedDict):
    """A checkpoint in a list; `step` and `source` are what its graph wrote down."""

    checkpoint_id: str
    namespace: str
    parent_id: str | None
    at: str
    step: Any
    source: Any
    channels: int
    bytes: int
    writes: int


class ValueAnswer(TypedDict):
    """A value as plain data, with its tag and its size."""

    tag: str
    bytes: int
    value: Any


class WriteAnswer(ValueAnswer):
    """A value that a task of the graph wrote after the checkpoint."""

    task_id: str
    task_path: str
    number: int
    channel: str


class CheckpointContent(TypedDict):
    """A checkpoint with its values by channel, and the config that resumes a graph from it."""

    thread_id: str
    checkpoint_id: str
    namespace: str
    parent_id: str | None
    at: str
    step: Any
    source: Any
    channels: int
    bytes: int
    config: dict[str, dict[str, str]]
    metadata: Any
    state: Any
    values: dict[str, ValueAnswer]
    writes: list[WriteAnswer]
    channel: str | None


class PathDifference(TypedDict):
    """What differs at one path of a value."""

    path: str
    change: str
    before: Any
    after: Any


class DifferencesAnswer(TypedDict):
    """The first differences, and how many more there are."""

    differences: list[PathDifference]
    more: int


class ChannelDifference(DifferencesAnswer):
    """The differences of a channel; `opaque` where a value cannot be shown as plain data."""

    channel: str
    change: str
    bytes_before: int | None
    bytes_after: int | None
    opaque: NotRequired[bool]


class CheckpointDifference(TypedDict):
    """The differences between two checkpoints, by channel."""

    thread_id: str
    before: CheckpointAnswer
    after: CheckpointAnswer
    metadata: DifferencesAnswer
    channels: list[ChannelDifference]
    unchanged: list[str]


class ThreadCopyAnswer(TypedDict):
    """The threads of a copy, and how many checkpoints were copied and how many were there."""

    source: str
    target: str
    copied: int
    kept: int


class FreedSpaceAnswer(TypedDict):
    """What is freed, in all and of each thread; of a preview, what would be."""

    preview: bool
    threads: list[checkpoints_threads.FreedSpace]
    freed: ThreadSizes


def threads(app: AppContext, *, limit: int, after: str | None) -> list[ThreadAnswer]:
    """A page of the threads of this worktree, newest first."""
    found = app.read(AREA, checkpoints_threads.threads, limit=limit, after=after)
    return [
        {
            "thread_id": thread.thread_id,
            "namespaces": thread.namespaces,
            "newest": thread.newest,
            "at": _time_of(newest),
            "checkpoints": thread.sizes.checkpoints,
            "writes": thread.sizes.writes,
            "pieces": thread.sizes.pieces,
            "bytes": thread.sizes.bytes,
        }
        for thread, newest in found
    ]


def list_(
    app: AppContext, *, thread: str, namespace: str | None, limit: int, after: str | None
) -> list[CheckpointAnswer]:
    """A page of a thread's checkpoints, newest first."""
    found = app.read(
        AREA,
        checkpoints_threads.list_checkpoints,
        thread,
        namespace=namespace,
        limit=limit,
        after=after,
    )
    return [_summary(each.namespace, each.row, each.writes) for each in found]


def _summary(namespace: str, row: Checkpoint, writes: int) -> CheckpointAnswer:
    values = decode_value_table(row.channels)
    metadata = _as_dict(preview(TaggedBytes(row.metadata_tag, row.metadata)))
    return {
        "checkpoint_id": decode_checkpoint_id(row.place),
        "namespace": namespace,
        "parent_id": None if row.parent is None else decode_checkpoint_id(row.parent),
        "at": _time_of(row),
        "step": as_json(metadata.get("step")),
        "source": as_json(metadata.get("source")),
        "channels": len(values.channels),
        "bytes": values.size,
        "writes": writes,
    }


def show(
    app: AppContext,
    *,
    thread: str,
    checkpoint: str | None,
    namespace: str | None,
    channel: str | None,
) -> CheckpointContent:
    """A checkpoint with its values as plain data, and the config that resumes a graph from it."""
    bundle = app.read(
        AREA, checkpoints_threads.show_checkpoint, thread, checkpoint, namespace=namespace
    )
    values = bundle.values
    if channel is not None:
        if channel not in values:
            raise NotFound("channel", channel, f"there are {', '.join(values) or 'none'}")
        values = {channel: values[channel]}
    listed = _summary(bundle.namespace, bundle.row, len(bundle.writes))
    return {
        "thread_id": bundle.thread_id,
        **listed,
        "config": {
            "configurable": {
                "thread_id": bundle.thread_id,
                "checkpoint_ns": bundle.namespace,
                "checkpoint_id": bundle.checkpoint_id,
            }
        },
        "metadata": as_json(preview(bundle.metadata)),
        "state": as_json(preview(bundle.state)),
        "values": {name: _value_data(each) for name, each in values.items()},
        "writes": [
            {
                "task_id": write.task_id,
                "task_path": write.task_path,
                "number": write.number,
                "channel": write.channel,
                **_value_data(write.value),
            }
            for write in bundle.writes
        ],
        "channel": channel,
    }


def _value_data(value: TaggedBytes) -> ValueAnswer:
    return {"tag": value.tag, "bytes": len(value.data), "value": as_json(preview(value))}


def diff(
    app: AppContext,
    *,
    thread: str,
    checkpoint: str | None,
    other: str | None,
    namespace: str | None,
    limit: int,
) -> CheckpointDifference:
    """The differences between two checkpoints, by channel and path."""
    before, after = app.read(
        AREA,
        checkpoints_threads.compare_checkpoints,
        thread,
        checkpoint,
        other,
        namespace=namespace,
    )
    names = list(dict.fromkeys([*before.values, *after.values]))
    alike = [name for name in names if before.values.get(name) == after.values.get(name)]
    return {
        "thread_id": before.thread_id,
        "before": _summary(before.namespace, before.row, len(before.writes)),
        "after": _summary(after.namespace, after.row, len(after.writes)),
        "metadata": _differences(preview(before.metadata), preview(after.metadata), limit),
        "channels": [_channel(before, after, name, limit) for name in names if name not in alike],
        "unchanged": alike,
    }


def _channel(
    before: CheckpointBundle, after: CheckpointBundle, name: str, limit: int
) -> ChannelDifference:
    one, other = before.values.get(name), after.values.get(name)
    change, opaque = "added" if one is None else "removed" if other is None else "changed", False
    if one is None or other is None:
        value = preview(one or other or TaggedBytes("null", b""))
        pair = (None, value) if one is None else (value, None)
        answer = _first_differences([Difference("", change, *pair)], limit)
    else:
        old, new = preview(one), preview(other)
        opaque = is_opaque(old) or is_opaque(new)
        answer = _differences(old, new, limit)
        if not answer["differences"]:  # equal as previews, but serialized differently
            bytes_ = (preview_bytes(one.tag, one.data), preview_bytes(other.tag, other.data))
            answer = _first_differences([Difference("", "changed", *bytes_)], limit)
    found: ChannelDifference = {
        "channel": name,
        "change": change,
        "bytes_before": None if one is None else len(one.data),
        "bytes_after": None if other is None else len(other.data),
        "differences": answer["differences"],
        "more": answer["more"],
    }
    if opaque:
        found["opaque"] = True
    return found


def _differences(before: Any, after: Any, limit: int) -> DifferencesAnswer:
    return _first_differences(differences(before, after), limit)


def _first_differences(found: Any, limit: int) -> DifferencesAnswer:
    """The first differences, at most `limit`, and how many more there are."""
    left = iter(found)
    first = list(islice(left, max(1, limit)))
    return {
        "differences": [
            {
                "path": each.path,
                "change": each.change,
                "before": as_json(each.before),
                "after": as_json(each.after),
            }
            for each in first
        ],
        "more": sum(1 for _ in left),
    }


def copy(app: AppContext, *, source: str, target: str) -> ThreadCopyAnswer:
    """Copy a thread to another one."""
    app.read(AREA, checkpoints_threads.require_threads, [source])  # before a store is created
    done = app.run(AREA, checkpoints_threads.copy, source, target)
    return {"source": source, "target": target, "copied": done.copied, "kept": done.kept}


def prune(app: AppContext, *, threads: Sequence[str], preview: bool) -> FreedSpaceAnswer:
    """Keep only the newest checkpoint of each namespace of some threads."""
    return _free_space(app, checkpoints_threads.prune, threads, preview=preview)


def rm(app: AppContext, *, threads: Sequence[str], preview: bool) -> FreedSpaceAnswer:
    """Remove threads with everything in them."""
    return _free_space(app, checkpoints_threads.remove, threads, preview=preview)


def _free_space(
    app: AppContext,
    use_case: Callable[[UnitOfWork, Sequence[str]], list[checkpoints_threads.FreedSpace]],
    names: Sequence[str],
    *,
    preview: bool,
) -> FreedSpaceAnswer:
    """Prune or remove threads; a preview does it in a transaction that is rolled back."""
    app.read(AREA, checkpoints_threads.require_threads, names)
    if preview:
        with app.open(AREA) as store, unit_of_work(store, app.workspace.space(AREA)) as uow:
            freed = use_case(uow, names)
    else:
        freed = app.run(AREA, use_case, names)
    total = ThreadSizes(
        *(sum(numbers) for numbers in zip(*(each.freed for each in freed), strict=True))
    )
    return {"preview": preview, "threads": freed, "freed": total}


def _time_of(row: Checkpoint) -> str:
    """When the graph made a checkpoint; the row of an imported one was created later."""
    state = TaggedBytes(row.state_tag, decompress(row.state, is_packed=row.state_packed))
    made = _as_dict(preview(state)).get("ts")
    return made if isinstance(made, str) else row.created_at.isoformat()


def _as_dict(shown: Any) -> dict[str, Any]:
    return shown if isinstance(shown, dict) else {}
