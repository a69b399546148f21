"""A transaction on one space, in SQL."""

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from herdbook.adapters.sql.dialect import Dialect, Execute
from herdbook.adapters.sql.statements import Names, Parameters, SqlTable
from herdbook.domain.errors import AlreadyExists, NotFound
from herdbook.ports.engine.kinds import Kind
from herdbook.ports.engine.query import Query

E = TypeVar("E")


class Tables:
    """The tables of a store, each made ready when it is first used."""

    def __init__(self, dialect: Dialect, within: str) -> None:
        self.dialect = dialect
        self.within = within
        self._tables: dict[Kind[Any], SqlTable[Any]] = {}

    def __getitem__(self, kind: Kind[E]) -> SqlTable[E]:
        table = self._tables.get(kind)
        if table is None:
            table = self._tables[kind] = SqlTable(kind, self.dialect, self.within)
        return table


class SqlSession:
    """The primitives of a session, over whatever runs statements."""

    def __init__(self, execute: Execute, tables: Tables, space: str) -> None:
        self._execute = execute
        self._tables = tables
        self._space = space

    def get(self, kind: Kind[E], keys: Sequence[Any]) -> list[E | None]:
        table = self._tables[kind]
        if len(keys) == 1:
            rows = self._execute(table.get_one, [self._space, keys[0]])
            there: list[E] = self._entities(table, rows)
            return [there[0] if there else None]
        if not keys:
            return []
        fetched = self._execute(table.get_many, [self._space, list(keys)])
        found = {kind.key_of(row): row for row in self._entities(table, fetched)}
        return [found.get(key) for key in keys]

    def select(self, query: Query[E]) -> list[E]:
        table = self._tables[query.kind]
        return self._entities(table, self._execute(*table.select(self._space, query)))

    def _entities(self, table: SqlTable[E], fetched: Sequence[Sequence[Any]]) -> list[E]:
        """Fetched rows as entities."""
        return [table.row(each) for each in fetched]

    def count(self, query: Query[Any]) -> int:
        ((number,),) = self._execute(*self._tables[query.kind].count(self._space, query))
        return int(number)

    def insert(self, kind: Kind[E], rows: Sequence[E]) -> None:
        if not rows:
            return
        table = self._tables[kind]
        wanted = [kind.key_of(row) for row in rows]
        if len(set(wanted)) < len(wanted):
            raise AlreadyExists(kind.title, str(self._first_duplicate(kind, wanted)))
        if len(rows) == 1:
            done = self._execute(table.insert_one, [self._space, *table.values(rows[0])])
        else:
            done = self._execute(table.insert_many, [self._space, *self._lists(table, rows)])
        if len(done) < len(rows):
            inserted = {key for (key,) in done}
            if inserted:
                self.delete(kind, list(inserted))
            taken = next(key for key in wanted if key not in inserted)
            raise AlreadyExists(kind.title, str(taken))

    def _first_duplicate(self, kind: Kind[Any], wanted: Sequence[Any]) -> Any:
        """The first key that is there already, or came before in the same batch."""
        there = zip(wanted, self.get(kind, wanted), strict=True)
        seen = {key for key, row in there if row is not None}
        for key in wanted:
            if key in seen:
                return key
            seen.add(key)
        raise AssertionError("every key is free")

    def replace(self, kind: Kind[E], rows: Sequence[E]) -> None:
        if not rows:
            return
        table, keys = self._tables[kind], [kind.key_of(row) for row in rows]
        values = list(map(table.values, rows))
        if len(rows) == 1:
            names = self._changed_columns(kind, [(keys[0], values[0])])
            parameters = table.replace_one_parameters(self._space, values[0], names)
            if not table.count_replaced(self._execute(table.replace_one(names), parameters)):
                raise NotFound(kind.title, str(keys[0]))
            return
        there: list[E | None] = self.get(kind, keys)
        for key, old in zip(keys, there, strict=True):
            if old is None:
                raise NotFound(kind.title, str(key))
        names = self._changed_columns(kind, zip(keys, values, strict=True))
        parameters = table.replace_many_parameters(self._space, values, names)
        self._execute(table.replace_many(names), parameters)

    def _changed_columns(
        self,
        kind: Kind[Any],
        rows: Iterable[tuple[Any, Parameters]],  # noqa: ARG002 - for sessions that know more
    ) -> Names:
        """The columns that have to be written to replace rows, given as keys and values."""
        return self._tables[kind].changeable

    def delete(self, kind: Kind[Any], keys: Sequence[Any]) -> None:
        if len(keys) == 1:
            self._execute(self._tables[kind].delete_one, [self._space, keys[0]])
        elif keys:
            self._execute(self._tables[kind].delete_many, [self._space, list(keys)])

    @staticmethod
    def _lists(table: SqlTable[E], rows: Sequence[E]) -> list[list[Any]]:
        return [list(column) for column in zip(*map(table.values, rows), strict=True)]
