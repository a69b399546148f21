"""Checkpoints: `checkpoint threads|list|show|diff|copy|prune|rm`.

Nothing here needs LangGraph, and no object of a checkpoint is ever constructed: values are shown as
plain data.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, NotRequired, TypedDict, TypeVar

from herdbook.adapters.langgraph.preview import is_opaque, preview
from herdbook.adapters.langgraph.workflow_file import WorkflowFile
from herdbook.domain.checkpoints.model import Checkpoint, TaggedBytes, decode_checkpoint_id
from herdbook.domain.checkpoints.preview import Difference, differences, preview_bytes
from herdbook.domain.errors import NotFound
from herdbook.domain.location.areas import Area
from herdbook.entrypoints.context import AppContext
from herdbook.entrypoints.operations.answer_fields import answer_from
from herdbook.entrypoints.operations.checkpoints.preview import as_json
from herdbook.ports.checkpoint_storage.checkpoint_writer import CheckpointWriter
from herdbook.ports.checkpoint_storage.foreign_import import is_thread_here
from herdbook.ports.checkpoint_storage.thread_operations import ThreadSizes
from herdbook.ports.checkpoint_storage.value_store import decode_value_table, decompress
from herdbook.ports.repositories.checkpoints import CheckpointBundle
from herdbook.ports.unit_of_work.run import read
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork, unit_of_work
from herdbook.services.checkpoints import threads as checkpoints_threads
from herdbook.services.listing import Listing

AREA = Area.CHECKPOINTS
MAX_NAMES = 5
"""How many threads of a workflow file a warning names."""
R = TypeVar("R")


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


class DifferencesAnswer(TypedDict):
    """The first differences, and how many more there are."""

    differences: list[Difference]
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
    _warn_of_others(app)
    rows = [
        answer_from(ThreadAnswer, thread, thread.sizes, at=_time_of(newest))
        for thread, newest in found
    ]
    return Listing(rows, found.total, more=found.more)


def _warn_of_others(app: AppContext) -> None:
    """Name the threads of the workflow file that the space does not have."""
    file = _workflow_file(app)
    if file is None:
        return
    names = app.read(AREA, _lacking, sorted(file.thread_ids()))
    if names:
        more = "" if len(names) <= MAX_NAMES else ", …"
        app.warn(
            f"{len(names)} threads of {file.file} are not here yet and go on here when they are "
            f"used: {', '.join(map(repr, names[:MAX_NAMES]))}{more}"
        )


def _lacking(uow: UnitOfWork, names: Sequence[str]) -> list[str]:
    return [each for each in names if not is_thread_here(uow, each)]


def _workflow_file(app: AppContext) -> WorkflowFile | None:
    """The SqliteSaver's database whose threads are read until they go on here, if there is one."""
    file = app.workspace.workflow_file
    return None if file is None else _open_workflow_file(file)


@lru_cache(maxsize=1)
def _open_workflow_file(file: Path) -> WorkflowFile:
    """One for all questions of a call: the database is copied when it has changed."""
    return WorkflowFile(file)


def _read(app: AppContext, thread: str, use_case: Callable[..., R], *args: Any, **kwargs: Any) -> R:
    """Ask about a thread: the space, or the workflow file if the space does not have it."""
    file = _workflow_file(app)
    if file is not None and not app.read(AREA, is_thread_here, thread):
        copy = file.snapshot(thread, app.workspace.space(AREA))
        if copy is not None:
            space = app.workspace.space(AREA)
            return read(copy, space, use_case, thread, *args, **kwargs)
    return app.read(AREA, use_case, thread, *args, **kwargs)


def list_(
    app: AppContext, *, thread: str, namespace: str | None, limit: int, after: str | None
) -> list[CheckpointAnswer]:
    """A page of a thread's checkpoints, newest first."""
    found = _read(
        app,
        thread,
        checkpoints_threads.list_checkpoints,
        namespace=namespace,
        limit=limit,
        after=after,
    )
    rows = [_summary(each.namespace, each.row, each.writes) for each in found]
    return Listing(rows, found.total)


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
    bundle = _read(
        app, thread, checkpoints_threads.show_checkpoint, checkpoint, namespace=namespace
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
    before, after = _read(
        app,
        thread,
        checkpoints_threads.compare_checkpoints,
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
            each._replace(before=as_json(each.before), after=as_json(each.after)) for each in first
        ],
        "more": sum(1 for _ in left),
    }


def copy(app: AppContext, *, source: str, target: str) -> ThreadCopyAnswer:
    """Copy a thread to another one."""
    _require_threads(app, [source])  # before a store is created
    work = _taking_over(app, [source, target], checkpoints_threads.copy)
    done = app.run(AREA, work, source, target)
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
    _require_threads(app, names)
    work = _taking_over(app, names, use_case)
    if preview:
        create = app.workspace.workflow_file is not None
        with (
            app.open(AREA, create=create) as store,
            unit_of_work(store, app.workspace.space(AREA)) as uow,
        ):
            freed = work(uow, names)
    else:
        freed = app.run(AREA, work, names)
    total = ThreadSizes(
        *(sum(numbers) for numbers in zip(*(each.freed for each in freed), strict=True))
    )
    return {"preview": preview, "threads": freed, "freed": total}


def _require_threads(app: AppContext, names: Sequence[str]) -> None:
    """Raise NotFound for a thread that neither the space nor the workflow file has."""
    file = _workflow_file(app)
    lacking = [each for each in names if file is None or not file.find(each)]
    app.read(AREA, checkpoints_threads.require_threads, lacking)


def _taking_over(
    app: AppContext, names: Sequence[str], use_case: Callable[..., R]
) -> Callable[..., R]:
    """The use case, which first takes over those of the threads that only a workflow file has."""
    file = _workflow_file(app)

    def work(uow: UnitOfWork, *args: Any) -> R:
        if file is not None:
            for name in names:
                file.bring(CheckpointWriter(uow), name)
        return use_case(uow, *args)

    return work


def _time_of(row: Checkpoint) -> str:
    """When the graph made a checkpoint; the row of an imported one was created later."""
    state = TaggedBytes(row.state_tag, decompress(row.state, is_packed=row.state_packed))
    made = _as_dict(preview(state)).get("ts")
    return made if isinstance(made, str) else row.created_at.isoformat()


def _as_dict(shown: Any) -> dict[str, Any]:
    return shown if isinstance(shown, dict) else {}
