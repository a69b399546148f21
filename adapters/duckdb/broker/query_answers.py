"""Answers the queries of a broker's transactions, from memory if the rows are kept there."""

from collections.abc import Callable
from functools import partial
from typing import Any

import duckdb

from herdbook.adapters.duckdb.broker import wire
from herdbook.adapters.duckdb.broker.commit_group import KindChange
from herdbook.adapters.duckdb.broker.open_file import fetch
from herdbook.adapters.duckdb.broker.row_cache import CachedTable, RowCache
from herdbook.adapters.duckdb.broker.turn import Turn
from herdbook.adapters.duckdb.dialect import DUCKDB
from herdbook.adapters.sql.session import Tables
from herdbook.ports.engine.kinds import Dictionary, Kind

FindCursor = Callable[[Turn, Kind[Any]], duckdb.DuckDBPyConnection]
"""The cursor in which a transaction reads rows of a kind; may raise TryAgain."""


class QueryAnswers:
    """The rows as each transaction sees them; `cursor` is asked for those that are not kept."""

    def __init__(self, dictionary: Dictionary, tables: Tables, cursor: FindCursor) -> None:
        self._dictionary = dictionary
        self._tables = tables
        self._cursor = cursor
        self._cache = RowCache(tables)
        self._version = 0  # counts the transactions that the cache has followed

    def begin(self, turn: Turn, *, is_ahead: bool) -> None:
        """Let a reader see what is kept now, unless that is ahead of what is committed."""
        turn.version = -1 if is_ahead else self._version

    def forget_rows(self) -> None:
        """Keep no rows: they may have been changed by others, or were not written."""
        self._cache.clear()

    def apply(self, space: str, changes: list[KindChange]) -> None:
        """Follow a transaction that was committed."""
        for change in changes:
            written = [*change.inserts, *change.replaces]
            self._cache.change(space, change.kind, written, change.deletes)

    def advance(self) -> None:
        """From now on rows are kept that readers must not see which have begun before."""
        self._version += 1

    def answer(self, turn: Turn, message: list[Any]) -> Any:
        """The answer to a query.

        Raises duckdb.Error and what the cursor raises, and LookupError, TypeError and ValueError
        for a message that no client of ours sends.
        """
        match message:
            case ["get" | "has" as what, str(name), list(keys)]:
                kind = self._dictionary.kinds[name]
                kept = self._kept_rows(turn, kind)
                if kept is not None:
                    return kept.get(keys) if what == "get" else kept.find_keys(keys)
                return self._fetch_by_keys(turn, what, kind, keys)
            case ["select" | "count" as what, packed]:
                query = wire.unpack_query(self._dictionary, DUCKDB, packed)
                kept = self._kept_rows(turn, query.kind)
                if kept is not None:
                    return kept.select(query) if what == "select" else kept.count(query)
                table = self._tables[query.kind]
                build = table.select if what == "select" else table.count
                rows = self._fetch(turn, query.kind, *build(turn.space, query))
                return rows if what == "select" else rows[0][0]
        raise ValueError(f"no such message: {str(message[0])[:20]!r}")

    def unpack_change(self, packed: Any) -> KindChange:
        """What a client says it changed in a kind; raises LookupError, TypeError, ValueError."""
        name, inserts, replaces, deletes, columns = packed
        kind = self._dictionary.kinds[name]
        if not isinstance(deletes, list):
            raise TypeError("keys are a list")
        if not set(columns) <= set(self._tables[kind].changeable) or (replaces and not columns):
            raise LookupError("rows are replaced in columns that they have")
        return KindChange(
            kind,
            wire.unpack_rows(kind, inserts),
            wire.unpack_rows(kind, replaces),
            deletes,
            frozenset(columns),
        )

    def _fetch_by_keys(self, turn: Turn, what: str, kind: Kind[Any], keys: list[Any]) -> Any:
        table = self._tables[kind]
        if what == "get":
            statement = table.get_one if len(keys) == 1 else table.get_many
        elif turn.write and self._cache.is_behind_all(
            turn.space, kind, keys, partial(self._fetch, turn, kind)
        ):
            return []
        else:
            statement = table.find_key if len(keys) == 1 else table.find_keys
        given = [turn.space, keys[0] if len(keys) == 1 else keys]
        rows = self._fetch(turn, kind, statement, given)
        return rows if what == "get" else [key for (key,) in rows]

    def _kept_rows(self, turn: Turn, kind: Kind[Any]) -> CachedTable | None:
        """The rows of a kind as this transaction sees them, if they are in memory."""
        if not turn.write and turn.version != self._version:
            return None
        kept = self._cache.find(turn.space, kind)
        if kept is None and self._cache.is_due(turn.space, kind):
            kept = self._cache.load(turn.space, kind, partial(self._fetch, turn, kind))
        return kept

    def _fetch(
        self, turn: Turn, kind: Kind[Any], sql: str, parameters: list[Any]
    ) -> list[tuple[Any, ...]]:
        return fetch(self._cursor(turn, kind), sql, parameters)
