"""What a transaction has read, so that it writes no more columns than it changes, and asks once.

DuckDB takes its time for each column that an UPDATE names: a task has 23 of them, and its claim
changes six. Writing only those takes half of the processor time. A statement takes its time too,
whatever it asks: whether a key is free need not be asked of rows that were looked for in vain.
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
        self._free: dict[Kind[Any], set[Any]] = {}

    def add(self, kind: Kind[Any], rows: Iterable[Sequence[Any]]) -> None:
        """Note rows as they are in the store; only so many, and none that are never replaced."""
        if kind.append_only:
            return
        known, at = self._rows.setdefault(kind, {}), list(kind.columns).index(kind.key)
        for row in rows:
            if row[at] in known or len(known) < _MOST:
                known[row[at]] = row

    def add_free(self, kind: Kind[Any], keys: Iterable[Any]) -> None:
        """Note keys under which there are no rows; only so many."""
        free = self._free.setdefault(kind, set())
        if len(free) < _MOST:
            free.update(keys)

    def are_free(self, kind: Kind[Any], keys: Iterable[Any]) -> bool:
        """Whether all these keys are noted as free."""
        return self._free.get(kind, frozenset()).issuperset(keys)

    def forget(self, kind: Kind[Any], keys: Sequence[Any]) -> None:
        """Forget what was read under keys under which rows are made."""
        known = self._rows.get(kind, {})
        for key in keys:
            known.pop(key, None)
        self._free.get(kind, set()).difference_update(keys)

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
