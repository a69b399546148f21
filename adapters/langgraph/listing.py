"""A listing of checkpoints on its way: what was asked for, and how far it has come."""

from collections.abc import Callable, Mapping
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import get_checkpoint_id

from herdbook.domain.checkpoints.model import Checkpoint, TaggedBytes
from herdbook.ports.repositories.checkpoints import CheckpointBundle, Checkpoints

PAGE = 20


class Listing:
    """Checkpoints from the newest on, a few at a time: no transaction stays open in between.

    What is wanted of the metadata is compared as data, value by value, and never becomes part of a
    question to a store.
    """

    def __init__(
        self,
        config: RunnableConfig | None,
        wanted: Mapping[str, Any] | None,
        before: RunnableConfig | None,
        limit: int | None,
    ) -> None:
        self._thread_id: str | None = None
        self._namespace: str | None = None
        self._checkpoint_id: str | None = None
        if config is not None:
            configurable = config["configurable"]
            self._thread_id = str(configurable["thread_id"])
            self._namespace = configurable.get("checkpoint_ns")
            self._checkpoint_id = get_checkpoint_id(config) or None
        self._names: tuple[str, str] | None = None
        if self._thread_id is not None and self._namespace is not None:
            self._names = self._thread_id, self._namespace
        self._wanted = dict(wanted or {})
        self._before = (get_checkpoint_id(before) or None) if before else None
        self._left = limit
        self._last: Checkpoint | None = None
        self.over = limit is not None and limit < 1

    def next(
        self, kept: Checkpoints, metadata: Callable[[TaggedBytes], Any]
    ) -> list[CheckpointBundle]:
        """The next ones, some or none; `over` says whether there may be more."""
        size = PAGE if self._left is None or self._wanted else min(PAGE, self._left)
        rows = kept.page(
            self._thread_id,
            self._namespace,
            checkpoint_id=self._checkpoint_id,
            before=self._before,
            after=self._last,
            limit=size,
        )
        admitted = [row for row in rows if self._admits(row, metadata)][: self._left]
        found = list(kept.load_bundles(admitted, self._names))
        # Only now, because a transaction that breaks is asked again from the start.
        self._last = rows[-1] if rows else None
        if self._left is not None:
            self._left -= len(found)
        self.over = len(rows) < size or self._left == 0
        return found

    def _admits(self, row: Checkpoint, metadata: Callable[[TaggedBytes], Any]) -> bool:
        if not self._wanted:
            return True
        said = metadata(TaggedBytes(row.metadata_tag, row.metadata))
        return all(said.get(name) == value for name, value in self._wanted.items())


def config_of(thread_id: Any, namespace: str, checkpoint_id: str) -> RunnableConfig:
    """A checkpoint as LangGraph names it."""
    return {
        "configurable": {
            "thread_id": thread_id,
            "checkpoint_ns": namespace,
            "checkpoint_id": checkpoint_id,
        }
    }


def lane_of(config: RunnableConfig) -> tuple[str, str]:
    """The thread and the namespace that a configuration names."""
    configurable = config["configurable"]
    return str(configurable["thread_id"]), str(configurable.get("checkpoint_ns") or "")
