"""Stores that are like the one they are made from but for one thing."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from herdbook.ports.engine.kinds import Kind
from herdbook.ports.engine.query import Query
from herdbook.ports.engine.store import Session, Store, TryAgain


class WrappedStore:
    """A store whose sessions are given to a function before anybody uses them."""

    def __init__(self, store: Store, wrap: Callable[[Session], Any]) -> None:
        self._store = store
        self._wrap = wrap

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    @contextmanager
    def transaction(self, space: str, *, write: bool) -> Iterator[Session]:
        """Begin a transaction with a wrapped session."""
        with self._store.transaction(space, write=write) as session:
            yield self._wrap(session)


class WrappedSession:
    """A session that does as another one does."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def __getattr__(self, name: str) -> object:
        return getattr(self._session, name)


class WithoutWalk(WrappedSession):
    """A session that can only be asked step by step."""

    def __getattr__(self, name: str) -> object:
        if name == "walk":
            raise AttributeError(name)
        return super().__getattr__(name)


class Counting(WrappedSession):
    """A session that knows how often it was asked about which kind."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.asked: Counter[str] = Counter()

    def get(self, kind: Kind[Any], keys: Sequence[Any]) -> list[Any]:
        """Count and ask."""
        self.asked[kind.name] += 1
        return self._session.get(kind, keys)

    def select(self, query: Query[Any]) -> list[Any]:
        """Count and ask."""
        self.asked[query.kind.name] += 1
        return self._session.select(query)

    def count(self, query: Query[Any]) -> int:
        """Count and ask."""
        self.asked[query.kind.name] += 1
        return self._session.count(query)


class LosesAnswers(WrappedSession):
    """A session whose commits happen, but whose answers to them are lost on the way."""

    def commit(self) -> None:
        """Commit, and do not say so."""
        self._session.commit()
        raise TryAgain("wrapped store", "the connection was lost")
