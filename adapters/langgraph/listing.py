"""A paged listing of checkpoints: its filters and its position."""

from collections.abc import Callable, Mapping
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import get_checkpoint_id

from herdbook.domain.checkpoints.model import Checkpoint, TaggedBytes
from herdbook.ports.repositories.checkpoints import CheckpointBundle, Checkpoints

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
        self._last: Checkpoint | None = None
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

    def _admits(self, row: Checkpoint, metadata: Callable[[TaggedBytes], Any]) -> bool:
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
