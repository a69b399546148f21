"""Checkpoints: `checkpoint threads|list|show|diff|copy|prune|rm`.

Nothing here needs LangGraph, and no object of a checkpoint is ever constructed: values are shown as
plain data.
"""

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

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


def threads(app: AppContext, *, limit: int, after: str | None) -> list[dict[str, Any]]:
    """A page of the threads of this worktree, newest first."""
    found = app.read(AREA, checkpoints_threads.threads, limit=limit, after=after)
    return [
        {
            "thread_id": thread.thread_id,
            "namespaces": thread.namespaces,
            "newest": thread.newest,
            "at": _time_of(newest),
            **thread.sizes._asdict(),
        }
        for thread, newest in found
    ]


def list_(
    app: AppContext, *, thread: str, namespace: str | None, limit: int, after: str | None
) -> list[dict[str, Any]]:
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


def _summary(namespace: str, row: Checkpoint, writes: int) -> dict[str, Any]:
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
) -> dict[str, Any]:
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


def _value_data(value: TaggedBytes) -> dict[str, Any]:
    return {"tag": value.tag, "bytes": len(value.data), "value": as_json(preview(value))}


def diff(
    app: AppContext,
    *,
    thread: str,
    checkpoint: str | None,
    other: str | None,
    namespace: str | None,
    limit: int,
) -> dict[str, Any]:
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
) -> dict[str, Any]:
    one, other = before.values.get(name), after.values.get(name)
    summary: dict[str, Any] = {
        "channel": name,
        "change": "added" if one is None else "removed" if other is None else "changed",
        "bytes_before": one and len(one.data),
        "bytes_after": other and len(other.data),
    }
    if one is None or other is None:
        value = preview(one or other or TaggedBytes("null", b""))
        found = Difference(
            "", summary["change"], *((None, value) if one is None else (value, None))
        )
        return {**summary, **_first_differences([found], limit)}
    old, new = preview(one), preview(other)
    if is_opaque(old) or is_opaque(new):
        summary["opaque"] = True
    answer = _differences(old, new, limit)
    if not answer["differences"]:  # equal as previews, but serialized differently
        bytes_ = (preview_bytes(one.tag, one.data), preview_bytes(other.tag, other.data))
        answer = _first_differences([Difference("", "changed", *bytes_)], limit)
    return {**summary, **answer}


def _differences(before: Any, after: Any, limit: int) -> dict[str, Any]:
    return _first_differences(differences(before, after), limit)


def _first_differences(found: Any, limit: int) -> dict[str, Any]:
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


def copy(app: AppContext, *, source: str, target: str) -> dict[str, Any]:
    """Copy a thread to another one."""
    app.read(AREA, checkpoints_threads.require_threads, [source])  # before a store is created
    done = app.run(AREA, checkpoints_threads.copy, source, target)
    return {"source": source, "target": target, **done._asdict()}


def prune(app: AppContext, *, threads: Sequence[str], preview: bool) -> dict[str, Any]:
    """Keep only the newest checkpoint of each namespace of some threads."""
    return _free_space(app, checkpoints_threads.prune, threads, preview=preview)


def rm(app: AppContext, *, threads: Sequence[str], preview: bool) -> dict[str, Any]:
    """Remove threads with everything in them."""
    return _free_space(app, checkpoints_threads.remove, threads, preview=preview)


def _free_space(
    app: AppContext,
    use_case: Callable[[UnitOfWork, Sequence[str]], list[checkpoints_threads.FreedSpace]],
    names: Sequence[str],
    *,
    preview: bool,
) -> dict[str, Any]:
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
    return {
        "preview": preview,
        "threads": [
            {
                "thread_id": each.thread_id,
                "freed": each.freed._asdict(),
                "left": each.left._asdict(),
            }
            for each in freed
        ],
        "freed": total._asdict(),
    }


def _time_of(row: Checkpoint) -> str:
    """When the graph made a checkpoint; the row of an imported one was created later."""
    state = TaggedBytes(row.state_tag, decompress(row.state, is_packed=row.state_packed))
    made = _as_dict(preview(state)).get("ts")
    return made if isinstance(made, str) else row.created_at.isoformat()


def _as_dict(shown: Any) -> dict[str, Any]:
    return shown if isinstance(shown, dict) else {}
