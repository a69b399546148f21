"""Tables in the memory of a broker, so that a transaction's reads need no statement of DuckDB.

DuckDB takes 0.5 to 2 ms of a processor to plan a statement, whatever it reads. While the broker
holds the file nobody else writes it, so what was read stays true until the broker changes it.
"""

from bisect import bisect_left, bisect_right, insort
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

from herdbook.adapters.sql.session import Tables
from herdbook.adapters.sql.statements import SqlTable
from herdbook.ports.engine.kinds import Kind
from herdbook.ports.engine.query import Query

MOST_ROWS = 20_000
"""How many rows of a kind in a space are kept; more are left to DuckDB."""
MOST_ROWS_TOGETHER = 200_000
READS_BEFORE = 2
"""After how many reads of a kind in a space its rows are worth keeping."""

Values = Sequence[Any]
Fetch = Callable[[str, list[Any]], list[tuple[Any, ...]]]
SortKey = tuple[tuple[Any, ...], ...]

_AFTER_ALL = (2,)
"""Sorts after every value, and after a value that is missing."""


def _sort_value(value: Any) -> tuple[bool, Any]:
    return value is None, 0 if value is None else value


def _is_numbered(kind: Kind[Any]) -> bool:
    """Whether rows are only added, under rising numbers, as to a journal: these are too many."""
    return kind.append_only and kind.columns[kind.key].type_name == "integer"


class CachedTable:
    """The rows of a kind in a space, sorted by each lookup that was asked for."""

    def __init__(self, table: SqlTable[Any], rows: Sequence[Values]) -> None:
        self._table = table
        self._kind: Kind[Any] = table.kind
        self._key_at = list(self._kind.columns).index(self._kind.key)
        self._rows: dict[Any, Values] = {row[self._key_at]: row for row in rows}
        self._entities: dict[Any, Any] = {}
        self._indexes: dict[tuple[str, ...], list[SortKey]] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def get(self, keys: Sequence[Any]) -> list[Values]:
        """The rows with these keys."""
        return [self._rows[key] for key in keys if key in self._rows]

    def find_keys(self, keys: Sequence[Any]) -> list[Any]:
        """Those of these keys that there are."""
        return [key for key in keys if key in self._rows]

    def select(self, query: Query[Any]) -> list[Values]:
        """The rows of a query, in its order."""
        found = self._matching(query, page=True)
        return [self._rows[each[-1][1]] for each in found]

    def count(self, query: Query[Any]) -> int:
        """How many rows match a query, whatever its page."""
        return len(self._matching(query, page=False))

    def put(self, values: Values) -> None:
        """Insert a row or replace the one with its key."""
        key = values[self._key_at]
        self.remove(key)
        self._rows[key] = values
        for lookup, index in self._indexes.items():
            insort(index, self._sort_key(lookup, key))

    def remove(self, key: Any) -> None:
        """Remove a row if there is one with this key."""
        if key not in self._rows:
            return
        for lookup, index in self._indexes.items():
            sort_key = self._sort_key(lookup, key)
            del index[bisect_left(index, sort_key)]
        del self._rows[key]
        self._entities.pop(key, None)

    def _matching(self, query: Query[Any], *, page: bool) -> list[SortKey]:
        exact = dict(query.equals)
        fields = query.lookup[: len(exact) + (query.several is not None)]
        choices = [
            query.several[1] if query.several and name == query.several[0] else (exact[name],)
            for name in fields
        ]
        index = self._index(query.lookup)
        after = query.after if page else None
        parts = [
            self._part(index, tuple(map(_sort_value, prefix)), query, after)
            for prefix in product(*choices)
        ]
        found = parts[0] if len(parts) == 1 else [each for part in parts for each in part]
        if len(parts) > 1:
            found.sort(key=lambda each: each[len(fields) :])
        if query.descending:
            found.reverse()
        return found[: query.limit] if page else found

    @staticmethod
    def _part(
        index: list[SortKey], prefix: SortKey, query: Query[Any], after: tuple[Any, ...] | None
    ) -> list[SortKey]:
        """The entries that begin with a prefix, within the range and after the last row seen."""
        low, high = bisect_left(index, prefix), bisect_left(index, (*prefix, _AFTER_ALL))
        if query.within is not None:
            bounds = query.within[1]
            first, last = _sort_value(bounds.low), _sort_value(bounds.high)
            if bounds.low is not None:
                edge = (*prefix, first, _AFTER_ALL) if bounds.above else (*prefix, first)
                low = max(low, bisect_left(index, edge))
            if bounds.high is None:
                high = bisect_left(index, (*prefix, (True,)))
            else:
                edge = (*prefix, last, _AFTER_ALL) if bounds.through else (*prefix, last)
                high = min(high, bisect_left(index, edge))
        if after is not None:
            seen = (*prefix, *map(_sort_value, after))
            if query.descending:
                high = min(high, bisect_left(index, seen))
            else:
                low = max(low, bisect_right(index, seen))
        return index[low:high]

    def _index(self, lookup: tuple[str, ...]) -> list[SortKey]:
        index = self._indexes.get(lookup)
        if index is None:
            index = sorted(self._sort_key(lookup, key) for key in self._rows)
            self._indexes[lookup] = index
        return index

    def _sort_key(self, lookup: tuple[str, ...], key: Any) -> SortKey:
        row = self._entities.get(key)
        if row is None:
            row = self._entities[key] = self._table.row(self._rows[key])
        held = vars(row)
        return (*(_sort_value(held[name]) for name in lookup), (False, key))


class RowCache:
    """The tables that are kept; all are forgotten when the broker releases the file."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._kept: dict[tuple[str, Kind[Any]], CachedTable] = {}
        self._reads: Counter[tuple[str, Kind[Any]]] = Counter()
        self._too_large: set[tuple[str, Kind[Any]]] = set()
        self._last_keys: dict[tuple[str, Kind[Any]], int] = {}

    def clear(self) -> None:
        """Forget everything."""
        self._kept.clear()
        self._reads.clear()
        self._too_large.clear()
        self._last_keys.clear()

    def find(self, space: str, kind: Kind[Any]) -> CachedTable | None:
        """The rows of a kind in a space, if they are kept."""
        return self._kept.get((space, kind))

    def is_due(self, space: str, kind: Kind[Any]) -> bool:
        """Whether these rows should be loaded: they are read often and not too many."""
        place = (space, kind)
        if _is_numbered(kind) or kind.bytes_fields or place in self._too_large:
            return False
        self._reads[place] += 1
        return self._reads[place] > READS_BEFORE

    def load(self, space: str, kind: Kind[Any], fetch: Fetch) -> CachedTable | None:
        """Keep the rows of a kind in a space, unless there are too many."""
        table = self._tables[kind]
        sql = f"SELECT {table.column_list} FROM {table.name} WHERE space = ? LIMIT {MOST_ROWS + 1}"
        rows = fetch(sql, [space])
        if len(rows) > MOST_ROWS:
            self._too_large.add((space, kind))
            return None
        if len(rows) + sum(map(len, self._kept.values())) > MOST_ROWS_TOGETHER:
            self._kept.clear()
        kept = self._kept[space, kind] = CachedTable(table, rows)
        return kept

    def is_behind_all(self, space: str, kind: Kind[Any], keys: Sequence[Any], fetch: Fetch) -> bool:
        """Whether numbers that are to be keys are above all there are, as those of a journal."""
        table = self._tables[kind]
        if not _is_numbered(kind) or not keys:
            return False
        place = (space, kind)
        if place not in self._last_keys:
            sql = f'SELECT max("{kind.key}") FROM {table.name} WHERE space = ?'
            ((last,),) = fetch(sql, [space])
            self._last_keys[place] = -1 if last is None else last
        return bool(min(keys) > self._last_keys[place])

    def change(
        self, space: str, kind: Kind[Any], written: Sequence[Values], gone: Sequence[Any]
    ) -> None:
        """Follow a change of the broker's own."""
        kept = self._kept.get((space, kind))
        if kept is not None:
            for key in gone:
                kept.remove(key)
            for values in written:
                kept.put(values)
            if len(kept) > MOST_ROWS:
                del self._kept[space, kind]
                self._too_large.add((space, kind))
        if (space, kind) in self._last_keys and written:
            at = list(kind.columns).index(kind.key)
            highest = max(values[at] for values in written)
            self._last_keys[space, kind] = max(self._last_keys[space, kind], highest)
