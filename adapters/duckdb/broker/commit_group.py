"""Commits of several clients that are made durable together."""

from typing import Any, NamedTuple

from herdbook.adapters.sql.session import Tables
from herdbook.ports.engine.dictionary import HEADS
from herdbook.ports.engine.kinds import Kind

_CLOCK_AT = list(HEADS.columns).index("clock")


class KindChange(NamedTuple):
    """What a transaction changed in a kind: rows by their values, and keys.

    `columns` are those in which the replaced rows differ from what they were.
    """

    kind: Kind[Any]
    inserts: list[list[Any]]
    replaces: list[list[Any]]
    deletes: list[Any]
    columns: frozenset[str]

    def keys(self, rows: list[list[Any]]) -> list[Any]:
        """The keys of some of these rows."""
        at = list(self.kind.columns).index(self.kind.key)
        return [values[at] for values in rows]


class Statement(NamedTuple):
    """A statement, its parameters, and how many rows it has to change, if that matters."""

    sql: str
    parameters: list[Any]
    rows: int | None = None


class _Net(NamedTuple):
    """What became of a row: its values, None if it was deleted; new, or changed in columns."""

    values: list[Any] | None
    is_new: bool = False
    columns: frozenset[str] = frozenset()


class CommitGroup:
    """The net changes of transactions that followed one another."""

    def __init__(self) -> None:
        self.note = ""
        self._changes: dict[tuple[str, Kind[Any]], dict[Any, _Net]] = {}

    def touches(self, space: str, kind: Kind[Any]) -> bool:
        """Whether rows of a kind in a space are changed by it."""
        return (space, kind) in self._changes

    def admits(self, space: str, changes: list[KindChange]) -> bool:
        """Whether these changes can be added: no row comes again that it has made or deleted."""
        for change in changes:
            known = self._changes.get((space, change.kind), {})
            if any(key in known for key in change.keys(change.inserts)):
                return False
            for key in change.keys(change.replaces):
                if key in known and known[key].values is None:
                    return False
        return True

    def add(self, space: str, changes: list[KindChange]) -> None:
        """Add the changes of one transaction; DuckDB sees only what becomes of each row."""
        for change in changes:
            known = self._changes.setdefault((space, change.kind), {})
            for key, values in zip(change.keys(change.inserts), change.inserts, strict=True):
                known[key] = _Net(values, is_new=True)
            for key, values in zip(change.keys(change.replaces), change.replaces, strict=True):
                before = known.get(key, _Net(None))
                known[key] = _Net(values, before.is_new, before.columns | change.columns)
            for key in change.deletes:
                if key in known and known[key].is_new:
                    del known[key]
                else:
                    known[key] = _Net(None)
            if change.kind is HEADS:
                for values in (*change.inserts, *change.replaces):
                    self.note = f"{values[_CLOCK_AT]} {space}"

    def statements(self, tables: Tables) -> list[Statement]:
        """The statements that write it."""
        written: list[Statement] = []
        for (space, kind), changed in self._changes.items():
            table = tables[kind]
            inserts = [net.values for net in changed.values() if net.values and net.is_new]
            replaced = [net for net in changed.values() if net.values and not net.is_new]
            replaces = [net.values for net in replaced if net.values]
            columns = frozenset[str]().union(*(net.columns for net in replaced))
            names = tuple(name for name in table.changeable if name in columns)
            deletes = [key for key, net in changed.items() if net.values is None]
            if deletes:
                written.append(Statement(table.delete_many, [space, deletes]))
            if len(replaces) == 1:
                parameters = table.replace_one_parameters(space, replaces[0], names)
                written.append(Statement(table.replace_one(names), parameters, 1))
            elif replaces:
                parameters = table.replace_many_parameters(space, replaces, names)
                written.append(Statement(table.replace_many(names), parameters, len(replaces)))
            if len(inserts) == 1:
                written.append(Statement(table.append_one, [space, *inserts[0]]))
            elif inserts:
                written.append(Statement(table.append_many, [space, *_columns(inserts)]))
        return written


def _columns(rows: list[list[Any]]) -> list[list[Any]]:
    return [list(column) for column in zip(*rows, strict=True)]
