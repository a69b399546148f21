"""Queries and changes as SQL statements with parameters."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Generic, TypeVar

from herdbook.adapters.sql.dialect import Convert, Dialect, quote_name
from herdbook.ports.engine.codec import construct_unchecked
from herdbook.ports.engine.kinds import Column, Kind
from herdbook.ports.engine.query import Query, Range

E = TypeVar("E")
Parameters = list[Any]
Names = tuple[str, ...]
"""The names of columns."""


class SqlTable(Generic[E]):
    """The table of one kind: every statement about it, built once."""

    def __init__(self, kind: Kind[E], dialect: Dialect, within: str) -> None:
        self.kind = kind
        self.dialect = dialect
        self.name = f"{within}.{quote_name(kind.name)}"
        self.columns = list(kind.columns.values())
        self.key = kind.columns[kind.key]
        self._incoming = [(c.name, dialect.to_db(c)) for c in self.columns]
        self._outgoing = [
            (at, dialect.from_db(c)) for at, c in enumerate(self.columns) if dialect.from_db(c)
        ]
        self._names = [c.name for c in self.columns]

    def values(self, row: E) -> Parameters:
        """A row as parameters, in the order of its columns."""
        held = vars(row)
        return [
            value if convert is None or value is None else convert(value)
            for value, convert in ((held[name], convert) for name, convert in self._incoming)
        ]

    def row(self, fetched: Sequence[Any]) -> E:
        """A fetched row as an entity."""
        values = list(fetched)
        for at, convert in self._outgoing:
            if values[at] is not None and convert is not None:
                values[at] = convert(values[at])
        return construct_unchecked(self.kind, dict(zip(self._names, values, strict=True)))

    def parameter(self, column: Column, value: Any) -> Any:
        """One value as a parameter."""
        convert: Convert | None = self.dialect.to_db(column)
        return value if value is None or convert is None else convert(value)

    @cached_property
    def column_list(self) -> str:
        """The names of the columns, quoted, with commas between them."""
        return ", ".join(quote_name(c.name) for c in self.columns)

    @cached_property
    def _by_key(self) -> str:
        """The condition for the row with one key."""
        p, key = self.dialect.parameter, quote_name(self.kind.key)
        return f"FROM {self.name} WHERE space = {p} AND {key} = {p}"

    @cached_property
    def _by_keys(self) -> str:
        """The condition for the rows with a list of keys."""
        keys = self.dialect.array_parameter(self.key)
        among = self.dialect.among(quote_name(self.kind.key), keys)
        return f"FROM {self.name} WHERE space = {self.dialect.parameter} AND {among}"

    @cached_property
    def get_one(self) -> str:
        """Select one row by its key."""
        return f"SELECT {self.column_list} {self._by_key}"

    @cached_property
    def get_many(self) -> str:
        """Select rows by a list of keys, in no particular order."""
        return f"SELECT {self.column_list} {self._by_keys}"

    @cached_property
    def insert_one(self) -> str:
        """Insert one row unless its key or a unique is taken; returns the key if inserted."""
        return f"{self.append_one} ON CONFLICT DO NOTHING RETURNING {quote_name(self.kind.key)}"

    @cached_property
    def append_one(self) -> str:
        """Insert one row whose key is known to be free."""
        values = ", ".join(self.dialect.value_parameter(c) for c in self.columns)
        return (
            f"INSERT INTO {self.name} (space, {self.column_list}) "
            f"VALUES ({self.dialect.parameter}, {values})"
        )

    @cached_property
    def insert_many(self) -> str:
        """Insert rows given as one list per column; returns the keys of those inserted."""
        return f"{self.append_many} ON CONFLICT DO NOTHING RETURNING {quote_name(self.kind.key)}"

    @cached_property
    def append_many(self) -> str:
        """Insert rows whose keys are known to be free, given as one list per column."""
        p = self.dialect.parameter
        lists = ", ".join(f"unnest({self.dialect.array_parameter(c)})" for c in self.columns)
        return f"INSERT INTO {self.name} (space, {self.column_list}) SELECT {p}, {lists}"

    @cached_property
    def find_key(self) -> str:
        """Select one key if there is a row with it."""
        return f"SELECT {quote_name(self.kind.key)} {self._by_key}"

    @cached_property
    def find_keys(self) -> str:
        """Select those of a list of keys for which there are rows, in no particular order."""
        return f"SELECT {quote_name(self.kind.key)} {self._by_keys}"

    @cached_property
    def changeable(self) -> Names:
        """The names of all columns but the key."""
        return tuple(c.name for c in self.columns if c.name != self.kind.key)

    def replace_one(self, names: Names) -> str:
        """Update these columns of one row; parameters are their values, the space, the key."""
        p, key = self.dialect.parameter, quote_name(self.kind.key)
        changes = ", ".join(
            f"{quote_name(name)} = {self.dialect.value_parameter(self.kind.columns[name])}"
            for name in names
        )
        return (
            f"UPDATE {self.name} AS kept SET {changes} "
            f"WHERE kept.space = {p} AND kept.{key} = {p}{self._count_clause}"
        )

    def replace_one_parameters(self, space: str, values: Parameters, names: Names) -> Parameters:
        """The parameters of `replace_one` for a row that is given as `values`."""
        given = dict(zip(self._names, values, strict=True))
        return [*(given[name] for name in names), space, given[self.kind.key]]

    def replace_many(self, names: Names) -> str:
        """Update these columns of rows; parameters are a list per column, keys first, the space."""
        p, key = self.dialect.parameter, quote_name(self.kind.key)
        columns = [self.key, *(self.kind.columns[name] for name in names)]
        lists = ", ".join(
            f"unnest({self.dialect.array_parameter(c)}) AS {quote_name(c.name)}" for c in columns
        )
        changes = ", ".join(f"{quote_name(name)} = fresh.{quote_name(name)}" for name in names)
        return (
            f"UPDATE {self.name} AS kept SET {changes} FROM (SELECT {lists}) AS fresh "
            f"WHERE kept.space = {p} AND kept.{key} = fresh.{key}{self._count_clause}"
        )

    def replace_many_parameters(
        self, space: str, rows: Sequence[Parameters], names: Names
    ) -> Parameters:
        """The parameters of `replace_many` for rows that are given as their values."""
        lists = dict(zip(self._names, zip(*rows, strict=True), strict=True))
        return [*(list(lists[name]) for name in (self.kind.key, *names)), space]

    @cached_property
    def _count_clause(self) -> str:
        """What lets an UPDATE tell how many rows it has changed."""
        return "" if self.dialect.counts_changes else f" RETURNING kept.{quote_name(self.kind.key)}"

    def count_replaced(self, answer: Sequence[tuple[Any, ...]]) -> int:
        """How many rows an UPDATE has changed, from its answer."""
        return int(answer[0][0]) if self.dialect.counts_changes else len(answer)

    @cached_property
    def delete_one(self) -> str:
        """Delete one row by its key."""
        return f"DELETE {self._by_key}"

    @cached_property
    def delete_many(self) -> str:
        """Delete rows by a list of keys."""
        return f"DELETE {self._by_keys}"

    def select(self, space: str, query: Query[E]) -> tuple[str, Parameters]:
        """A query as a statement and its parameters."""
        where, parameters = self._where(space, query)
        if query.after is not None:
            condition, more = self._after(query)
            where, parameters = f"{where} AND {condition}", parameters + more
        way = " DESC" if query.descending else ""
        order = ", ".join(
            quote_name(name) + way + (" NULLS LAST" if self.kind.columns[name].optional else "")
            for name in query.order
        )
        limit = "" if query.limit is None else f" LIMIT {query.limit:d}"
        return (
            f"SELECT {self.column_list} FROM {self.name} WHERE {where} ORDER BY {order}{limit}",
            parameters,
        )

    def count(self, space: str, query: Query[E]) -> tuple[str, Parameters]:
        """The number of rows that a query admits, as a statement and its parameters."""
        where, parameters = self._where(space, query)
        return f"SELECT count(*) FROM {self.name} WHERE {where}", parameters

    def _where(self, space: str, query: Query[E]) -> tuple[str, Parameters]:
        conditions, parameters = [f"space = {self.dialect.parameter}"], [space]
        for name, value in query.equals:
            condition, more = self._equal(self.kind.columns[name], value)
            conditions.append(condition)
            parameters += more
        if query.several is not None:
            condition, more = self._among(self.kind.columns[query.several[0]], query.several[1])
            conditions.append(condition)
            parameters += more
        if query.within is not None:
            name, bounds = query.within
            condition, more = self._between(self.kind.columns[name], bounds)
            conditions.append(condition)
            parameters += more
        return " AND ".join(conditions), parameters

    def _equal(self, column: Column, value: Any) -> tuple[str, Parameters]:
        name = quote_name(column.name)
        if value is None:
            return f"{name} IS NULL", []
        mark, given = self.dialect.value_parameter(column), self.parameter(column, value)
        if column.type_name == "name" and self.dialect.hash_of:
            hashed = self.dialect.hash_of
            return f"{hashed(name)} = {hashed(mark)} AND {name} = {mark}", [given, given]
        return f"{name} = {mark}", [given]

    def _among(self, column: Column, values: Sequence[Any]) -> tuple[str, Parameters]:
        name, mark = quote_name(column.name), self.dialect.array_parameter(column)
        given = [self.parameter(column, value) for value in values if value is not None]
        condition, parameters = self.dialect.among(name, mark), [given]
        if column.type_name == "name" and self.dialect.hash_of:
            hashed = self.dialect.hash_of
            known = f"{hashed(name)} = ANY(ARRAY(SELECT {hashed('one')} FROM unnest({mark}) one))"
            condition, parameters = f"{known} AND {condition}", [given, given]
        if None in values:
            condition = f"({condition} OR {name} IS NULL)"
        return condition, parameters

    def _between(self, column: Column, bounds: Range) -> tuple[str, Parameters]:
        name, mark = quote_name(column.name), self.dialect.value_parameter(column)
        conditions, parameters = [], []
        for bound, sign in (
            (bounds.low, ">" if bounds.above else ">="),
            (bounds.high, "<=" if bounds.through else "<"),
        ):
            if bound is not None:
                conditions.append(f"{name} {sign} {mark}")
                parameters.append(self.parameter(column, bound))
        return " AND ".join(conditions) or f"{name} IS NOT NULL", parameters

    def _after(self, query: Query[E]) -> tuple[str, Parameters]:
        """Rows after the last one seen: later in some field, equal in all before it."""
        ways: list[str] = []
        parameters: Parameters = []
        equal: list[str] = []
        equal_parameters: Parameters = []
        for name, value in zip(query.order, query.after or (), strict=True):
            column = self.kind.columns[name]
            mark, given = self.dialect.value_parameter(column), self.parameter(column, value)
            sign = "<" if query.descending else ">"
            if value is not None:
                later = f"{quote_name(name)} {sign} {mark}"
                if column.optional:
                    later = f"({later} OR {quote_name(name)} IS NULL)"
                ways.append(" AND ".join([*equal, later]))
                parameters += [*equal_parameters, given]
            same, more = (
                (f"{quote_name(name)} IS NULL", [])
                if value is None
                else (f"{quote_name(name)} = {mark}", [given])
            )
            equal.append(same)
            equal_parameters += more
        return "(" + " OR ".join(f"({way})" for way in ways) + ")", parameters
