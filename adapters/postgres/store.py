"""Rows in Postgres."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Self
from uuid import uuid4

import psycopg

from herdbook.adapters.postgres.connections import Connections
from herdbook.adapters.postgres.session import PostgresSession, Talk
from herdbook.adapters.sql.dialect import Dialect, quoted
from herdbook.adapters.sql.layout import raise_heads, steps, written
from herdbook.adapters.sql.session import Tables
from herdbook.domain.errors import StoreDamaged, StoreTooNew, StoreUnavailable
from herdbook.domain.journal import Head
from herdbook.domain.places import area_of
from herdbook.ports.dictionary import HEADS
from herdbook.ports.ids import Ids
from herdbook.ports.kinds import Dictionary
from herdbook.ports.wire import utc

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
        if not write:
            with self.asking(space) as session:
                # Only who has asked something sees what was there at that moment.
                _ = session.head
                yield session
            return
        area_of(space)
        with self._pool().borrowed() as connection:
            talk = Talk(connection, self.url)
            now, head = self._begin_writing(talk, space)
            yield PostgresSession.begun(talk, self._tables, space, now, head)

    @contextmanager
    def asking(self, space: str) -> Iterator[PostgresSession]:
        area_of(space)
        with self._pool().borrowed() as connection:
            yield PostgresSession(Talk(connection, self.url), self._tables, space)

    def _begin_writing(self, talk: Talk, space: str) -> tuple[datetime, Head]:
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
