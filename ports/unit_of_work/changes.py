"""The changes of a transaction, row by row."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from herdbook.domain.journal import Cause, Op, Provenance
from herdbook.ports.engine.kinds import Kind
from herdbook.ports.engine.query import Query

E = TypeVar("E")


RowKey = tuple[str, Any]
"""The name of a kind and the key of one of its rows."""


class RowChange(NamedTuple):
    """One row before and after a change.

    `cause` says why, if nobody asked for this very change; `root` is the removed row that a
    cascade follows from. `provenance` is set for a change that another replica made.
    """

    kind: Kind[Any]
    key: Any
    before: Any
    after: Any
    cause: Cause | None = None
    root: RowKey | None = None
    provenance: Provenance | None = None

    @property
    def rows(self) -> list[Any]:
        """The row before, the row after, or both."""
        return [row for row in (self.before, self.after) if row is not None]

    @property
    def op(self) -> Op:
        """The operation: add, save or remove."""
        if self.before is None:
            return Op.ADD
        return Op.REMOVE if self.after is None else Op.SAVE


class RowReader(Protocol):
    """The reading half of a session."""

    def get(self, kind: Kind[E], keys: Sequence[Any]) -> list[E | None]: ...

    def select(self, query: Query[E]) -> list[E]: ...


NetChanges = dict[str, dict[Any, RowChange]]


def net_changes(changes: Iterable[RowChange]) -> NetChanges:
    """The changes of a transaction as if each row had changed once, by kind and key."""
    found: NetChanges = {}
    for change in changes:
        rows = found.setdefault(change.kind.name, {})
        first = rows.get(change.key)
        before = change.before if first is None else first.before
        rows[change.key] = RowChange(change.kind, change.key, before, change.after)
    return {
        name: {
            key: change
            for key, change in rows.items()
            if change.before is not None or change.after is not None
        }
        for name, rows in found.items()
    }


def group_by_key(pairs: Iterable[tuple[Any, Any]]) -> dict[str, list[Any]]:
    """The values of each key, in input order."""
    groups: dict[str, list[Any]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups
