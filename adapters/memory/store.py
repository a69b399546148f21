"""A store in this process's memory: the reference that every other store must agree with.

It keeps rows in dictionaries and answers queries by `matches` and `sort_and_page` themselves. It is
a real store, for tests and for tools that keep nothing, and ends with its process.
"""

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, TypeVar
from uuid import uuid4

from herdbook.adapters.stores.base_store import BaseStore
from herdbook.adapters.wakeups.wakeups import SocketWakeups
from herdbook.domain.errors import AlreadyExists, NotFound, StoreBusy, StoreUnavailable
from herdbook.domain.journal import Head
from herdbook.domain.location.areas import area_of
from herdbook.ports.engine.codec import construct_unchecked
from herdbook.ports.engine.dictionary import HEADS
from herdbook.ports.engine.kinds import Dictionary, Kind
from herdbook.ports.engine.query import Query, matches, sort_and_page
from herdbook.ports.engine.wakeups import Wakeups
from herdbook.ports.world.system import Clock, Ids

E = TypeVar("E")
Tables = dict[str, dict[Any, Any]]


class _Space:
    def __init__(self) -> None:
        self.tables: Tables = {}
        self.writer = threading.Lock()
        self.pid = os.getpid()


def _copy_documents(kind: Kind[E], row: E) -> E:
    """A copy of a row that nobody outside can change through a nested document."""
    held = vars(row)
    copies = {name: _copy(held[name]) for name in kind.documents if held[name] is not None}
    return construct_unchecked(kind, {**held, **copies}) if copies else row


def _copy(document: Any) -> Any:
    """A copy of what JSON can hold; `copy.deepcopy` takes eight times as long."""
    if isinstance(document, dict):
        return {name: _copy(value) for name, value in document.items()}
    if isinstance(document, list):
        return [_copy(value) for value in document]
    return document


class MemorySession:
    """A transaction that works on its own version of the tables it changes."""

    def __init__(self, space: _Space, now: datetime) -> None:
        self.now = now
        self._space = space
        self._tables = dict(space.tables)
        self._changed: set[str] = set()
        self.head: Head | None = self._rows(HEADS).get("head")

    def _rows(self, kind: Kind[Any]) -> dict[Any, Any]:
        return self._tables.get(kind.name, {})

    def _writable(self, kind: Kind[Any]) -> dict[Any, Any]:
        if kind.name not in self._changed:
            self._tables[kind.name] = dict(self._rows(kind))
            self._changed.add(kind.name)
        return self._tables[kind.name]

    def get(self, kind: Kind[E], keys: Sequence[Any]) -> list[E | None]:
        rows = self._rows(kind)
        return [_copy_documents(kind, rows[key]) if key in rows else None for key in keys]

    def select(self, query: Query[E]) -> list[E]:
        rows = self._rows(query.kind).values()
        admitted = sort_and_page(query, [row for row in rows if matches(query, row)])
        return [_copy_documents(query.kind, row) for row in admitted]

    def count(self, query: Query[Any]) -> int:
        return sum(matches(query, row) for row in self._rows(query.kind).values())

    def insert(self, kind: Kind[E], rows: Sequence[E]) -> None:
        table = self._writable(kind)
        fresh: dict[Any, E] = {}
        for row in rows:
            key = kind.key_of(row)
            if key in table or key in fresh:
                raise AlreadyExists(kind.title, str(key))
            fresh[key] = _copy_documents(kind, row)
        table.update(fresh)

    def replace(self, kind: Kind[E], rows: Sequence[E]) -> None:
        table = self._writable(kind)
        for row in rows:
            if kind.key_of(row) not in table:
                raise NotFound(kind.title, str(kind.key_of(row)))
        table.update((kind.key_of(row), _copy_documents(kind, row)) for row in rows)

    def delete(self, kind: Kind[Any], keys: Sequence[Any]) -> None:
        table = self._writable(kind)
        for key in keys:
            table.pop(key, None)

    def commit(self) -> None:
        self._space.tables = self._tables


class MemoryStore(BaseStore):
    """Spaces of rows in memory."""

    def __init__(self, *, dictionary: Dictionary, clock: Clock, ids: Ids, patience: float) -> None:
        self.url = "memory://"
        self.uuid = self.node = uuid4().hex
        self.wakeups: Wakeups = SocketWakeups(self.uuid, self.node)
        self.dictionary = dictionary
        self.schema_version = dictionary.version
        self.ids = ids
        self._clock = clock
        self.patience = patience
        self._spaces: dict[str, _Space] = {}
        self._closed = False

    def _check_open(self) -> None:
        if self._closed:
            raise StoreUnavailable(self.url, "it has been closed here")

    def _space(self, name: str) -> _Space:
        space = self._spaces.get(name) or self._spaces.setdefault(name, _Space())
        if space.pid != os.getpid():
            # A writer of the parent never ends in the child, where it does not run.
            space.writer, space.pid = threading.Lock(), os.getpid()
        return space

    @contextmanager
    def transaction(self, space: str, *, write: bool) -> Iterator[MemorySession]:
        area_of(space)
        self._check_open()
        if not write and space not in self._spaces:
            yield MemorySession(_Space(), self._clock())
            return
        place = self._space(space)
        if not write:
            yield MemorySession(place, self._clock())
            return
        writer = place.writer
        if not writer.acquire(timeout=self.patience):
            raise StoreBusy(f"{self.url} ({space})", self.patience, "a thread of this process")
        try:
            yield MemorySession(place, self._clock())
        finally:
            writer.release()

    def spaces(self) -> list[str]:
        self._check_open()
        return sorted(name for name, space in self._spaces.items() if space.tables)

    def close(self) -> None:
        super().close()
        self._closed = True
