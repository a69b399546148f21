"""Rows in Postgres."""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Self, TypeVar
from uuid import uuid4

import psycopg

from herdbook.adapters.postgres.connections import Connections
from herdbook.adapters.sql.dialect import Dialect, quoted
from herdbook.adapters.sql.layout import raise_heads, steps, written
from herdbook.adapters.sql.session import SqlSession, Tables
from herdbook.domain.errors import AlreadyExists, StoreDamaged, StoreTooNew, StoreUnavailable
from herdbook.domain.journal import Head
from herdbook.domain.places import area_of
from herdbook.ports.dictionary import HEADS
from herdbook.ports.ids import Ids
from herdbook.ports.kinds import Dictionary, Kind
from herdbook.ports.store import Node, Step
from herdbook.ports.wire import utc

E = TypeVar("E")
Statement = tuple[str, list[Any] | None]

TEXT = 'text COLLATE "C"'


def _as_is(value: Any) -> Any:
    return value


POSTGRES = Dialect(
    parameter="%s",
    types={
        "id": TEXT,
        "name": TEXT,
        "text": TEXT,
        "choice": TEXT,
        "stamp": TEXT,
        "secret": TEXT,
        "integer": "bigint",
        "number choice": "bigint",
        "flag": "boolean",
        "moment": "timestamptz",
        "document": "json",
        "bytes": "bytea",
    },
    array_types={
        "id": "text",
        "name": "text",
        "text": "text",
        "choice": "text",
        "stamp": "text",
        "secret": "text",
        "integer": "bigint",
        "number choice": "bigint",
        "flag": "boolean",
        "moment": "timestamptz",
        "document": "json",
        "bytes": "bytea",
    },
    moment_to_db=_as_is,
    moment_from_db=utc,
    among=lambda column, values: f"{column} = ANY({values})",
    hash_of=lambda text: f"md5({text})",
)


class _Talk:
    """One transaction's statements, each batch on one way to the server and back."""

    def __init__(self, connection: psycopg.Connection[Any], place: str) -> None:
        self._connection = connection
        self._cursor = connection.cursor(binary=True)
        self._place = place
        self._pid = os.getpid()

    def __call__(self, statements: Sequence[Statement]) -> list[tuple[Any, ...]]:
        """Run statements and give the rows of the last one; an error of any of them is raised."""
        if os.getpid() != self._pid:
            raise StoreUnavailable(
                self._place, "this transaction belongs to the process that was forked"
            )
        *earlier, (sql, parameters) = statements
        try:
            if not earlier:
                self._cursor.execute(sql.encode(), parameters)
            else:
                with self._connection.pipeline():
                    for before, given in earlier:
                        self._connection.execute(before.encode(), given)
                    self._cursor.execute(sql.encode(), parameters)
        except psycopg.Error:
            if earlier:
                # The driver takes for prepared what the server has skipped behind the error.
                self._connection.close()
            raise
        return self._cursor.fetchall() if self._cursor.description else []


class PostgresSession(SqlSession):
    """A transaction on a Postgres server.

    What nobody waits for an answer to is held back and goes to the server with what comes next, at
    the latest with the commit: every answer costs a way there and back.
    """

    def __init__(
        self, talk: "_Talk", tables: Tables, space: str, now: datetime, head: Head | None
    ) -> None:
        super().__init__(self._run, tables, space, now)
        self.head = head
        self._talk = talk
        self._held_back: list[Statement] = []

    def _run(self, sql: str, parameters: list[Any] | None = None) -> list[tuple[Any, ...]]:
        held_back, self._held_back = self._held_back, []
        try:
            return self._talk([*held_back, (sql, parameters)])
        except psycopg.errors.UniqueViolation as error:
            raise AlreadyExists(error.diag.table_name or "row", self._space) from error

    def append(self, kind: Kind[E], rows: Sequence[E]) -> None:
        table = self._tables[kind]
        self._held_back += [(table.append_one, [self._space, *table.values(row)]) for row in rows]

    def replace(self, kind: Kind[E], rows: Sequence[E]) -> None:
        if kind is not HEADS:
            super().replace(kind, rows)
            return
        # It is there: we hold its lock.
        table = self._tables[kind]
        self._held_back += [
            (table.replace_one, table.replace_one_parameters(self._space, row)) for row in rows
        ]

    def commit(self) -> None:
        self._run("COMMIT")

    def walk(self, steps: Sequence[Step], starts: Sequence[Node]) -> list[tuple[Node, Node]]:
        """Follow edges with one recursive statement."""
        branches = []
        for step in steps:
            table = self._tables[step.kind].name
            source, target = f"e.{quoted(step.source)}", f"e.{quoted(step.target)}"
            branches.append(
                f"SELECT '{step.target_role}' COLLATE \"C\" AS role, {target} AS node "
                f"FROM {table} e WHERE reached.role = '{step.source_role}' AND e.space = %s "
                f"AND {source} = reached.node AND {target} IS NOT NULL"
            )
        sql = (
            "WITH RECURSIVE reached(from_role, from_node, role, node) AS ("
            'SELECT NULL COLLATE "C", NULL COLLATE "C", role COLLATE "C", node COLLATE "C" '
            "FROM unnest(%s::text[], %s::text[]) AS start(role, node) "
            "UNION SELECT reached.role, reached.node, further.role, further.node "
            f"FROM reached CROSS JOIN LATERAL ({' UNION ALL '.join(branches)}) further) "
            "SELECT from_role, from_node, role, node FROM reached WHERE from_node IS NOT NULL"
        )
        roles, nodes = [role for role, _ in starts], [node for _, node in starts]
        rows = self._execute(sql, [roles, nodes, *[self._space] * len(steps)])
        return [((a, b), (c, d)) for a, b, c, d in rows]


class PostgresStore:
    """Spaces of rows in a schema of a Postgres database."""

    def __init__(
        self, url: str, *, dictionary: Dictionary, ids: Ids, patience: float, create: bool
    ) -> None:
        self.dictionary = dictionary
        self.ids = ids
        self._connections: Connections | None = Connections(url, patience=patience)
        self.url = self._connections.place
        self._within = quoted(self._connections.schema)
        self._tables = Tables(POSTGRES, self._within)
        try:
            with self._connections.borrowed() as connection:
                self.uuid, self.schema_version = self._described(connection, create=create)
        except BaseException:
            self.close()
            raise

    def _described(self, connection: psycopg.Connection[Any], *, create: bool) -> tuple[str, int]:
        """Read what the store says of itself; lay out a new one, bring an older one up to date."""
        table = f"{self._within}.store"
        for _ in range(10):
            if self._says_who_it_is(connection):
                break
            if not create:
                raise StoreUnavailable(self.url, "there is no store here")
            self._found(connection)
        row = connection.execute(f"SELECT uuid, schema_version, catalogue FROM {table}").fetchone()
        if row is None or row[1] < self.dictionary.version:
            row = self._lay_out(connection, table)
        self._refuse_newer(row[1])
        return row[0], row[1]

    def _refuse_newer(self, version: int) -> None:
        if version > self.dictionary.version:
            raise StoreTooNew(self.url, version, self.dictionary.version)

    def _found(self, connection: psycopg.Connection[Any]) -> None:
        """Make the schema and the table whose lock everything else is done under."""
        if self._has_tables(connection) and not self._says_who_it_is(connection):
            schema = self._within.strip('"')
            raise StoreDamaged(self.url, f"the schema {schema} holds another program's tables")
        try:
            connection.execute(f"CREATE SCHEMA IF NOT EXISTS {self._within}")
            connection.execute(
                f"CREATE TABLE IF NOT EXISTS {self._within}.store (id boolean PRIMARY KEY, "
                "uuid text NOT NULL, schema_version bigint NOT NULL, catalogue text NOT NULL)"
            )
        except (
            psycopg.errors.UniqueViolation,
            psycopg.errors.DuplicateTable,
            psycopg.errors.DuplicateSchema,
        ):
            # Another process was faster by a hair; look again.
            return

    def _says_who_it_is(self, connection: psycopg.Connection[Any]) -> bool:
        table = f"{self._within}.store"
        row = connection.execute("SELECT to_regclass(%s)", [table]).fetchone()
        return row is not None and row[0] is not None

    def _has_tables(self, connection: psycopg.Connection[Any]) -> bool:
        sql = "SELECT 1 FROM pg_tables WHERE schemaname = %s AND tablename <> 'store' LIMIT 1"
        return connection.execute(sql, [self._within.strip('"')]).fetchone() is not None

    def _lay_out(self, connection: psycopg.Connection[Any], table: str) -> tuple[str, int]:
        """Bring the tables up to the dictionary; one process does, the others wait for it."""
        with connection.transaction():
            connection.execute(
                f"INSERT INTO {table} VALUES (TRUE, %s, 0, '{{}}') ON CONFLICT DO NOTHING",
                [uuid4().hex],
            )
            row = connection.execute(
                f"SELECT uuid, schema_version, catalogue FROM {table} FOR UPDATE"
            ).fetchone()
            if row is None:
                raise StoreDamaged(self.url, "it does not say which store it is")
            uuid, version, known = row
            if version >= self.dictionary.version:
                return uuid, version
            if not version and self._has_tables(connection):
                raise StoreDamaged(self.url, "it does not say which store it is")
            if version:
                # First, for this waits for the writers of all spaces, which may hold tables.
                connection.execute(raise_heads(self.dictionary, self._within))
            for step in steps(self.dictionary, json.loads(known), POSTGRES, self._within):
                connection.execute(step)
            connection.execute(
                f"UPDATE {table} SET schema_version = %s, catalogue = %s",
                [self.dictionary.version, written(self.dictionary)],
            )
            return uuid, self.dictionary.version

    def _pool(self) -> Connections:
        if self._connections is None:
            raise StoreUnavailable(self.url, "it has been closed here")
        return self._connections

    @contextmanager
    def transaction(self, space: str, *, write: bool) -> Iterator[PostgresSession]:
        area_of(space)
        with self._pool().borrowed() as connection:
            talk = _Talk(connection, self.url)
            begin = self._begin_writing if write else self._begin_reading
            now, head = begin(talk, space)
            yield PostgresSession(talk, self._tables, space, utc(now), head)

    def _begin_reading(self, talk: "_Talk", space: str) -> tuple[datetime, Head | None]:
        heads = self._tables[HEADS]
        ask = (
            f"SELECT clock_timestamp(), {heads.column_list} FROM (SELECT) AS one "
            f"LEFT JOIN {heads.name} ON space = %s"
        )
        begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
        now, *head = talk([(begin, None), (ask, [space])])[0]
        return now, heads.row(head) if head[0] is not None else None

    def _begin_writing(self, talk: "_Talk", space: str) -> tuple[datetime, Head | None]:
        """Lock the space's head: the next writer waits here until this one has ended."""
        heads = self._tables[HEADS]
        # The time is taken outside, so that it is read when the lock is held.
        lock = (
            f"SELECT clock_timestamp(), {heads.column_list} FROM (SELECT {heads.column_list} "
            f"FROM {heads.name} WHERE space = %s FOR UPDATE) AS locked"
        )
        talk([("BEGIN", None)])
        rows = talk([(lock, [space])])
        if not rows:
            # No head says yet who may write here; an upgrade waits for this lock, and we for it.
            schema = f"SELECT schema_version FROM {self._within}.store FOR SHARE"
            ((version,),) = talk([(schema, None)])
            self._refuse_newer(version)
            fresh = HEADS.entity(
                schema_version=self.dictionary.version, oldest_writer=self.dictionary.oldest_writer
            )
            talk([(heads.insert_one, [space, *heads.values(fresh)])])
            rows = talk([(lock, [space])])
        now, *head = rows[0]
        return now, heads.row(head)

    def spaces(self) -> list[str]:
        with self._pool().borrowed() as connection:
            heads = self._tables[HEADS].name
            rows = connection.execute(f"SELECT space FROM {heads} ORDER BY space").fetchall()
            return [space for (space,) in rows]

    def close(self) -> None:
        if self._connections is not None:
            self._connections.close()
            self._connections = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
