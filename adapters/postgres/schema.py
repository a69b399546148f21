"""The schema that a store is in: inspected, created, and upgraded."""

import json
from typing import Any
from uuid import uuid4

import psycopg
from psycopg import sql

from herdbook.adapters.postgres.begin import Mode, begin
from herdbook.adapters.postgres.bounded_connection import BoundedConnection
from herdbook.adapters.postgres.connection_pool import ConnectionPool
from herdbook.adapters.postgres.dialect import POSTGRES
from herdbook.adapters.postgres.ownership import STORE, Schema, inspection_sql, read_inspection
from herdbook.adapters.sql.dialect import quote_name
from herdbook.adapters.sql.layout import catalogue_json, migration_statements, upgrade_heads
from herdbook.adapters.stores.base_store import refuse_newer
from herdbook.domain.errors import StoreDamaged, StoreUnavailable
from herdbook.ports.engine.kinds import Dictionary
from herdbook.ports.engine.long_work import long_work

_ATTEMPTS = 10

# Another process has just created it.
_MADE_MEANWHILE = (
    psycopg.errors.UniqueViolation,
    psycopg.errors.DuplicateTable,
    psycopg.errors.DuplicateSchema,
)

Description = tuple[str, int]
"""A store's uuid and the version of the dictionary it is laid out by."""


def describe(connections: ConnectionPool, dictionary: Dictionary, *, create: bool) -> Description:
    """Read a store's description; lay out a new store, upgrade an older one.

    Raises StoreUnavailable if the schema is not ours to use, or there is none and `create` is not
    set.
    """
    place = connections.place
    for _ in range(_ATTEMPTS):
        found = _read(connections, dictionary)
        if found is None and not create:
            raise StoreUnavailable(place, "there is no store here")
        if found is None or found[1] < dictionary.version:
            found = _lay_out(connections, dictionary)
        if found is not None:
            refuse_newer(place, found[1], dictionary)
            return found
    raise StoreUnavailable(place, "others keep making its schema and taking it away")


def read_place(connections: ConnectionPool) -> tuple[object, ...]:
    """Where a store lies: its table, database and, where a role may know it, cluster and timeline.

    A restored dump is another table; a promoted standby or a recovered backup is another timeline.
    """
    with connections.borrow() as connection:
        table = f"{quote_name(connections.schema)}.{STORE}"
        ((base, oid, readable),) = begin(
            connection,
            Mode.READ,
            connections.patience,
            "SELECT (SELECT oid FROM pg_database WHERE datname = current_database()), "
            f"(SELECT tableoid FROM {table}), "
            "has_function_privilege('pg_catalog.pg_control_system()', 'EXECUTE') "
            "AND has_function_privilege('pg_catalog.pg_control_checkpoint()', 'EXECUTE')",
        )
        if not readable:
            return base, oid
        row = connection.execute(
            "SELECT system.system_identifier, checkpoint.timeline_id "
            "FROM pg_catalog.pg_control_system() system, "
            "pg_catalog.pg_control_checkpoint() checkpoint"
        ).fetchone()
        return base, oid, *(row or ())


def inspect_schema(
    connection: BoundedConnection,
    connections: ConnectionPool,
    dictionary: Dictionary,
    mode: Mode = Mode.READ,
) -> Schema:
    """Begin a transaction by checking that the schema is ours to use."""
    question = inspection_sql(connection, connections.schema, [STORE, *dictionary.kinds])
    rows = begin(connection, mode, connections.patience, question)
    return read_inspection(rows, connections.place, connections.schema)


def _read(connections: ConnectionPool, dictionary: Dictionary) -> Description | None:
    """A store's description, with version 0 if it is empty; None if there is no store."""
    with connections.borrow() as connection:
        if STORE not in inspect_schema(connection, connections, dictionary).tables:
            return None
        table = f"{quote_name(connections.schema)}.{STORE}"
        row = connection.execute(f"SELECT uuid, schema_version, catalogue FROM {table}").fetchone()
        return ("", 0) if row is None else (row[0], row[1])


@long_work()
def _lay_out(connections: ConnectionPool, dictionary: Dictionary) -> Description | None:
    """Create the schema and its tables, or upgrade them to the dictionary, in one transaction.

    One process does it; others wait for the row of the store, or for the name of what is created,
    and get None if somebody else has created it meanwhile.
    """
    with connections.borrow() as connection:
        making = _SchemaBuilder(connection, connections, dictionary)
        description = making.lay_out()
        if description is not None:
            connection.execute("COMMIT")
        return description


class _SchemaBuilder:
    """The one transaction in which a schema is laid out."""

    def __init__(
        self, connection: BoundedConnection, connections: ConnectionPool, dictionary: Dictionary
    ) -> None:
        self._connection = connection
        self._connections = connections
        self._dictionary = dictionary
        self._within = quote_name(connections.schema)
        self._table = f"{self._within}.{STORE}"

    def lay_out(self) -> Description | None:
        """Do everything but the commit; None if somebody else was faster."""
        schema = inspect_schema(self._connection, self._connections, self._dictionary, Mode.WRITE)
        # Times in these statements are written without a zone, and they may take long.
        self._run("SET LOCAL TimeZone TO 'UTC'")
        self._run("SET LOCAL statement_timeout TO 0")
        if schema.maker is not None:
            self._run(sql.SQL("SET LOCAL ROLE {}").format(sql.Identifier(schema.maker)))
        try:
            self._make_store(schema)
        except _MADE_MEANWHILE:
            return None
        uuid, version, known = self._lock()
        # What others have created since, they created before we got this lock.
        there = self._inspect_again(schema.role).tables
        if version >= self._dictionary.version:
            return uuid, version
        if not version and there != {STORE}:
            raise self._damaged_error("it does not say which store it is")
        if version:
            # First, because this waits for the writers of all spaces, which may hold tables.
            self._run(upgrade_heads(self._dictionary, self._within))
        for step in migration_statements(
            self._dictionary, json.loads(known), POSTGRES, self._within
        ):
            self._run(step)
        self._run(
            f"UPDATE {self._table} SET schema_version = %s, catalogue = %s",
            [self._dictionary.version, catalogue_json(self._dictionary)],
        )
        self._inspect_again(schema.role)
        return uuid, self._dictionary.version

    def _make_store(self, schema: Schema) -> None:
        """Create the schema and the table whose lock protects everything else."""
        if not schema.exists:
            # Not IF NOT EXISTS: one that somebody else creates just now is not ours.
            self._run(f"CREATE SCHEMA {self._within}")
        if STORE in schema.tables:
            return
        if schema.tables:
            name = self._connections.schema
            raise self._damaged_error(f"the schema {name} holds another program's tables")
        self._run(
            f"CREATE TABLE {self._table} (id boolean PRIMARY KEY, "
            "uuid text NOT NULL, schema_version bigint NOT NULL, catalogue text NOT NULL)"
        )

    def _lock(self) -> tuple[str, int, str]:
        """Lock the row of the store and return its values."""
        self._run(
            f"INSERT INTO {self._table} VALUES (TRUE, %s, 0, '{{}}') ON CONFLICT DO NOTHING",
            [uuid4().hex],
        )
        columns = "uuid, schema_version, catalogue"
        row = self._run(f"SELECT {columns} FROM {self._table} FOR UPDATE").fetchone()
        if row is None:
            raise self._damaged_error("it does not say which store it is")
        uuid, version, known = row
        return uuid, version, known

    def _inspect_again(self, role: str) -> Schema:
        """Check that the schema is still ours to use, for the role that began."""
        names = [STORE, *self._dictionary.kinds]
        question = inspection_sql(self._connection, self._connections.schema, names, role)
        rows = self._run(question).fetchall()
        return read_inspection(rows, self._connections.place, self._connections.schema)

    def _damaged_error(self, reason: str) -> StoreDamaged:
        return StoreDamaged(self._connections.place, reason)

    def _run(self, statement: Any, given: list[Any] | None = None) -> psycopg.Cursor[Any]:
        return self._connection.execute(statement, given)
