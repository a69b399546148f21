"""LangGraph's checkpoint saver on a Herdbook store."""

import asyncio
from collections.abc import (
    AsyncIterator,
    Callable,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_id,
    get_checkpoint_metadata,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from herdbook.adapters.langgraph.saver_store import saver_store
from herdbook.adapters.langgraph.values import (
    Allowed,
    GuardedSerializer,
    decode_metadata,
    encode_metadata,
)
from herdbook.domain.checkpoints.model import Checkpoint as CheckpointRow
from herdbook.domain.checkpoints.model import TaggedBytes
from herdbook.domain.errors import AlreadyExists, InvalidValue
from herdbook.ports.checkpoint_storage import thread_operations
from herdbook.ports.checkpoint_storage.checkpoint_writer import CheckpointWriter
from herdbook.ports.checkpoint_storage.value_store import ChannelValue
from herdbook.ports.engine.store import Store
from herdbook.ports.repositories.checkpoints import CheckpointBundle, Checkpoints, TaskWrite

R = TypeVar("R")
P = ParamSpec("P")

CACHE_BYTES = 64 * 2**20

PAGE = 20


class CheckpointListing:
    """Checkpoints, newest first, in pages: no transaction stays open between them.

    The metadata filter is compared as data, value by value, and never becomes part of a query to a
    store.
    """

    def __init__(
        self,
        config: RunnableConfig | None,
        wanted: Mapping[str, Any] | None,
        before: RunnableConfig | None,
        limit: int | None,
    ) -> None:
        self.thread_id: str | None = None
        self._namespace: str | None = None
        self._checkpoint_id: str | None = None
        if config is not None:
            configurable = config["configurable"]
            self.thread_id = str(configurable["thread_id"])
            self._namespace = configurable.get("checkpoint_ns")
            self._checkpoint_id = get_checkpoint_id(config) or None
        self._names: tuple[str, str] | None = None
        if self.thread_id is not None and self._namespace is not None:
            self._names = self.thread_id, self._namespace
        self._wanted = dict(wanted or {})
        self._before = (get_checkpoint_id(before) or None) if before else None
        self._left = limit
        self._last: CheckpointRow | None = None
        self.finished = limit is not None and limit < 1

    def next_page(
        self, kept: Checkpoints, metadata: Callable[[TaggedBytes], Any]
    ) -> list[CheckpointBundle]:
        """The next page, which may be empty; `finished` says that there are no more."""
        size = PAGE if self._left is None or self._wanted else min(PAGE, self._left)
        rows = kept.page(
            self.thread_id,
            self._namespace,
            checkpoint_id=self._checkpoint_id,
            before=self._before,
            after=self._last,
            limit=size,
        )
        admitted = [row for row in rows if self._admits(row, metadata)][: self._left]
        found = list(kept.load_bundles(admitted, self._names))
        # Only now, because a broken transaction is repeated from the start.
        self._last = rows[-1] if rows else None
        if self._left is not None:
            self._left -= len(found)
        self.finished = len(rows) < size or self._left == 0
        return found

    def _admits(self, row: CheckpointRow, metadata: Callable[[TaggedBytes], Any]) -> bool:
        if not self._wanted:
            return True
        found = metadata(TaggedBytes(row.metadata_tag, row.metadata))
        return all(found.get(name) == value for name, value in self._wanted.items())


def config_of(thread_id: Any, namespace: str, checkpoint_id: str) -> RunnableConfig:
    """LangGraph's configuration for a checkpoint."""
    return {
        "configurable": {
            "thread_id": thread_id,
            "checkpoint_ns": namespace,
            "checkpoint_id": checkpoint_id,
        }
    }


def lane_of(config: RunnableConfig) -> tuple[str, str]:
    """The thread id and the namespace of a configuration."""
    configurable = config["configurable"]
    return str(configurable["thread_id"]), str(configurable.get("checkpoint_ns") or "")


def _in_thread(
    method: Callable[Concatenate["HerdbookSaver", P], R],
) -> Callable[Concatenate["HerdbookSaver", P], Coroutine[Any, Any, R]]:
    """The method as a coroutine, which runs it, or what overrides it, in a thread."""

    @wraps(method)
    async def run(self: "HerdbookSaver", /, *args: P.args, **kwargs: P.kwargs) -> R:
        own: Callable[P, R] = getattr(self, method.__name__)
        return await asyncio.to_thread(own, *args, **kwargs)

    return run


class HerdbookSaver(BaseCheckpointSaver[Any]):
    """Stores checkpoints in a Herdbook store.

    `HerdbookSaver()` uses the store and the space of the current folder's checkpoints; a URL or an
    open store may be given instead, and a space in it (`checkpoints/<owner>`). Only values of known
    classes are decoded: `allow` adds further ones, as classes or as (module, name). The store is
    opened on first use; `with` or `close` closes it. Any thread may use it, and any number of
    processes; `room` is the size of its cache of values in bytes.
    """

    serde: SerializerProtocol

    def __init__(
        self,
        place: str | Store | None = None,
        space: str | None = None,
        *,
        allow: Iterable[Allowed] = (),
        serde: SerializerProtocol | None = None,
        room: int = CACHE_BYTES,
    ) -> None:
        super().__init__(serde=serde or GuardedSerializer(allow))
        self._saver_store = saver_store(place, space, room)

    def close(self) -> None:
        """Close the store if this saver has opened it; closing twice is no error."""
        self._saver_store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.close)

    def get_next_version(self, current: Any, channel: None) -> Any:
        """The next version of a channel: a number, or a text if the current one is a text.

        Raises InvalidValue for a text that does not begin with a number.
        """
        if not isinstance(current, str):
            return super().get_next_version(current, channel)
        number, dot, rest = current.partition(".")
        try:
            following = int(number) + 1
        except ValueError as error:
            raise InvalidValue("version", f"{current!r} does not begin with a number") from error
        return f"{following:0{len(number)}}{dot}{rest}"

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        thread_id, namespace = lane_of(config)
        all_metadata = get_checkpoint_metadata(config, metadata)
        run_id = all_metadata.get("run_id")
        rest = {name: each for name, each in checkpoint.items() if name != "channel_values"}
        versions = checkpoint["channel_versions"]
        encode = self._encode
        values = {
            name: ChannelValue(versions.get(name), False, partial(encode, value))  # noqa: FBT003
            if name not in new_versions
            else self._changed_value(versions.get(name), value)
            for name, value in checkpoint["channel_values"].items()
        }
        work = partial(
            CheckpointWriter.put,
            thread_id=thread_id,
            namespace=namespace,
            checkpoint_id=checkpoint["id"],
            parent_id=get_checkpoint_id(config) or None,
            run_id=None if run_id is None else str(run_id),
            metadata=encode_metadata(all_metadata, self.serde),
            state=self._encode(rest),
            values=values,
        )
        try:
            self._saver_store.write(partial(work, new=True), [thread_id])
        except AlreadyExists:
            self._saver_store.write(work)
        return config_of(config["configurable"]["thread_id"], namespace, checkpoint["id"])

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        thread_id, namespace = lane_of(config)
        done = [
            TaskWrite(
                task_id, task_path, WRITES_IDX_MAP.get(channel, at), channel, self._encode(value)
            )
            for at, (channel, value) in enumerate(writes)
        ]
        replace = all(channel in WRITES_IDX_MAP for channel, _ in writes)
        checkpoint_id = str(config["configurable"]["checkpoint_id"])
        self._saver_store.write(
            lambda kept: kept.put_writes(
                thread_id, namespace, checkpoint_id, done, replace=replace
            ),
            [thread_id],
        )

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        names = lane_of(config)
        checkpoint_id = get_checkpoint_id(config) or None

        def question(kept: Checkpoints) -> CheckpointBundle | None:
            row = kept.find(*names, checkpoint_id)
            return None if row is None else next(kept.load_bundles([row], names))

        found = self._saver_store.read(question, names[0])
        return found and self._tuple(found, config["configurable"]["thread_id"])

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 - LangGraph calls it so
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        listing = CheckpointListing(config, filter, before, limit)
        while not listing.finished:
            yield from self._next_page(listing)

    def delete_thread(self, thread_id: str) -> None:
        names = [str(thread_id)]
        self._saver_store.write(
            lambda kept: thread_operations.remove_threads(kept.uow, names), names
        )

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        if run_ids:
            self._saver_store.write(
                lambda kept: thread_operations.remove_runs(kept.uow, map(str, run_ids))
            )

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        source, target = str(source_thread_id), str(target_thread_id)
        self._saver_store.write(
            lambda kept: thread_operations.copy_thread(kept.uow, source, target), [source, target]
        )

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        if isinstance(thread_ids, str):
            raise InvalidValue("thread_ids", "must be several ids, not one text")
        names = [str(thread_id) for thread_id in thread_ids]
        if strategy == "delete":
            self._saver_store.write(
                lambda kept: thread_operations.remove_threads(kept.uow, names), names
            )
        elif strategy == "keep_latest":
            for name in names:
                self._saver_store.write(partial(_prune_thread, thread_id=name), [name])
        else:
            raise InvalidValue("strategy", f"{strategy!r} is neither keep_latest nor delete")

    aget_tuple = _in_thread(get_tuple)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 - LangGraph calls it so
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        listing = CheckpointListing(config, filter, before, limit)
        while not listing.finished:
            for each in await asyncio.to_thread(self._next_page, listing):
                yield each

    aput = _in_thread(put)
    aput_writes = _in_thread(put_writes)
    adelete_thread = _in_thread(delete_thread)
    adelete_for_runs = _in_thread(delete_for_runs)
    acopy_thread = _in_thread(copy_thread)
    aprune = _in_thread(prune)

    def _next_page(self, listing: CheckpointListing) -> Sequence[CheckpointTuple]:
        page = partial(listing.next_page, metadata=partial(decode_metadata, serializer=self.serde))
        return [self._tuple(held) for held in self._saver_store.read(page, listing.thread_id)]

    def _decode_values(self, values: Mapping[str, TaggedBytes]) -> dict[str, Any]:
        if isinstance(self.serde, GuardedSerializer):
            return self.serde.loads_all(values)
        return {name: self.serde.loads_typed(each) for name, each in values.items()}

    def _changed_value(self, version: Any, value: Any) -> ChannelValue:
        encoded = self._encode(value)  # outside of the transaction, which others wait for
        return ChannelValue(version, changed=True, write=lambda: encoded)

    def _encode(self, value: Any) -> TaggedBytes:
        tag, data = self.serde.dumps_typed(value)
        return TaggedBytes(tag, bytes(data))

    def _tuple(self, held: CheckpointBundle, thread_id: Any = None) -> CheckpointTuple:
        thread_id = held.thread_id if thread_id is None else thread_id
        read, parent, namespace = self.serde.loads_typed, held.parent_id, held.namespace
        checkpoint: Any = read(held.state)
        checkpoint["channel_values"] = self._decode_values(held.values)
        return CheckpointTuple(
            config_of(thread_id, namespace, held.checkpoint_id),
            checkpoint,
            decode_metadata(held.metadata, self.serde),
            None if parent is None else config_of(thread_id, namespace, parent),
            [(done.task_id, done.channel, read(done.value)) for done in held.writes],
        )


def _prune_thread(kept: CheckpointWriter, thread_id: str) -> int:
    return thread_operations.prune_thread(kept.uow, thread_id)
