"""Counts how often stores are opened and what is done in them, by whichever way they are opened."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

import pytest

from herdbook import adapters
from herdbook.ports.engine.store import Session, Store
from tests.contract.wrapped import WrappedSession, WrappedStore


class CountingSession(WrappedSession):
    """A session that counts its commits."""

    def __init__(self, session: Session, counts: Counter[str]) -> None:
        super().__init__(session)
        self._counts = counts

    def commit(self) -> None:
        """Count and commit."""
        self._counts["commits"] += 1
        self._session.commit()


class CountingStore(WrappedStore):
    """A store that counts its transactions and their commits."""

    def __init__(self, store: Store, counts: Counter[str]) -> None:
        super().__init__(store, lambda session: CountingSession(session, counts))
        self._counts = counts

    def __enter__(self) -> Self:
        self._store.__enter__()
        return self

    def __exit__(self, *details: object) -> None:
        self._store.__exit__(*details)

    @contextmanager
    def transaction(self, space: str, *, write: bool) -> Iterator[Session]:
        """Count and begin a transaction."""
        self._counts["writes" if write else "reads"] += 1
        with super().transaction(space, write=write) as session:
            yield session


class KeptInMemory(CountingStore):
    """A store in memory that is still there when it is opened the next time."""

    def __exit__(self, *_: object) -> None:
        """Keep it."""

    def close(self) -> None:
        """Keep it."""


class Counts:
    """What was opened, begun and committed since the last `reset`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.counts: Counter[str] = Counter()
        self.opened: list[str] = []
        self._in_memory: dict[str, KeptInMemory] = {}
        self._open_store = adapters.open_store
        monkeypatch.setattr(adapters, "open_store", self._open)

    def _open(self, url: str, **options: Any) -> Any:
        area = str(options.get("area"))
        self.opened.append(area)
        if url == "memory://":
            if area not in self._in_memory:
                self._in_memory[area] = KeptInMemory(self._open_store(url, **options), self.counts)
            return self._in_memory[area]
        return CountingStore(self._open_store(url, **options), self.counts)

    def reset(self) -> None:
        """Begin to count again."""
        self.counts.clear()
        self.opened.clear()
