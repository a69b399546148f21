"""What a transaction has read, so that it writes no more columns than it changes.

DuckDB takes its time for each column that an UPDATE names: a task has 23 of them, and its claim
changes six. Writing only those takes half of the processor time.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from herdbook.adapters.sql.session import Tables
from herdbook.adapters.sql.statements import Names, Parameters
from herdbook.ports.engine.kinds import Kind

_MOST = 10_000
"""How many rows of a kind are noted: whoever reads more would hold them all in memory."""


class ReadRows:
    """The rows that a transaction has read, by the values of their columns in the store.

    Values and not entities: a caller may change a document that it was given.
    """

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._rows: dict[Kind[Any], dict[Any, Sequence[Any]]] = {}

    def add(self, kind: Kind[Any], rows: Iterable[Sequence[Any]]) -> None:
        """Note rows as they are in the store; only so many, and none that are never replaced."""
        if kind.append_only:
            return
        known, at = self._rows.setdefault(kind, {}), list(kind.columns).index(kind.key)
        for row in rows:
            if row[at] in known or len(known) < _MOST:
                known[row[at]] = row

    def forget(self, kind: Kind[Any], keys: Iterable[Any]) -> None:
        """Forget rows that are made again under their keys."""
        known = self._rows.get(kind, {})
        for key in keys:
            known.pop(key, None)

    def changed_columns(self, kind: Kind[Any], rows: Iterable[tuple[Any, Parameters]]) -> Names:
        """The columns in which rows, given as keys and values, differ from what was read.

        All of them if one of the rows was not read. Documents are compared as the text that is
        stored: 1 and true are the same to Python, and not in a document.
        """
        table, known = self._tables[kind], self._rows.get(kind, {})
        changed: set[str] = set()
        for key, values in rows:
            before = known.get(key)
            if before is None:
                return table.changeable
            pairs = zip(kind.columns, values, before, strict=True)
            changed.update(name for name, value, old in pairs if value != old)
        # An UPDATE needs a column: of a row that is replaced by itself it may be any.
        return tuple(n for n in table.changeable if n in changed) or table.changeable[:1]
