"""What a transaction has done so far, row by row."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from herdbook.domain.journal import Op
from herdbook.ports.engine.kinds import Kind
from herdbook.ports.engine.query import Query

E = TypeVar("E")


class Change(NamedTuple):
    """One row before and after."""

    kind: Kind[Any]
    key: Any
    before: Any
    after: Any

    @property
    def rows(self) -> list[Any]:
        """What there is of it: the row before, the row after, or both."""
        return [row for row in (self.before, self.after) if row is not None]

    @property
    def op(self) -> Op:
        """What happened to it."""
        if self.before is None:
            return Op.ADD
        return Op.REMOVE if self.after is None else Op.SAVE


class Reads(Protocol):
    """The reading half of a session, as rules need it."""

    def get(self, kind: Kind[E], keys: Sequence[Any]) -> list[E | None]: ...

    def select(self, query: Query[E]) -> list[E]: ...


Nets = dict[str, dict[Any, Change]]


def net(changes: Iterable[Change]) -> Nets:
    """The changes of a transaction as if each row had changed once, by kind and key."""
    found: Nets = {}
    for change in changes:
        rows = found.setdefault(change.kind.name, {})
        first = rows.get(change.key)
        before = change.before if first is None else first.before
        rows[change.key] = Change(change.kind, change.key, before, change.after)
    return {
        name: {
            key: change
            for key, change in rows.items()
            if change.before is not None or change.after is not None
        }
        for name, rows in found.items()
    }


def grouped(pairs: Iterable[tuple[Any, Any]]) -> dict[str, list[Any]]:
    """The values under each key, in the order they came."""
    groups: dict[str, list[Any]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups
