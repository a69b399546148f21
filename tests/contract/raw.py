"""A store as its engine's own driver sees it, behind the adapter's back."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import lmdb
import psycopg
from psycopg import sql

from tests.pgbouncer_server import straight_url


def path_of(url: str) -> Path:
    """Where an embedded store lies."""
    return Path(url.partition("://")[2])


@contextmanager
def postgres(url: str) -> Iterator[psycopg.Connection[Any]]:
    """A connection whose tables are those of the store at a URL."""
    server, _, schema = url.rpartition("schema=")
    with psycopg.connect(straight_url(server.rstrip("?&")), autocommit=True) as connection:
        connection.execute(sql.SQL("SET search_path TO {}").format(sql.Identifier(schema)))
        connection.execute("SET TimeZone TO 'UTC'")
        yield connection


@contextmanager
def duckdb_file(url: str, *, write: bool = False) -> Iterator[duckdb.DuckDBPyConnection]:
    """The file of a store that nobody has open."""
    with duckdb.connect(path_of(url), read_only=not write) as connection:
        yield connection


@contextmanager
def lmdb_entries(url: str, database: str) -> Iterator[list[tuple[bytes, bytes]]]:
    """What a store that nobody has open in this process has in one of its LMDB databases."""
    with lmdb.open(str(path_of(url)), readonly=True, max_dbs=8) as env:
        handle = env.open_db(database.encode(), create=False)
        with env.begin(db=handle) as txn:
            yield [(bytes(key), bytes(value)) for key, value in txn.cursor()]


def rows(engine: str, url: str) -> dict[str, list[dict[str, Any]]]:
    """All rows of all spaces by the name of their kind, in the engine's own types."""
    found: dict[str, list[dict[str, Any]]] = {}
    match engine:
        case "lmdb":
            with lmdb_entries(url, "rows") as entries:
                for key, value in entries:
                    found.setdefault(key[4:].split(b"\0")[0].decode(), []).append(
                        json.loads(value[4:].partition(b"\0")[0])
                    )
        case "duckdb":
            with duckdb_file(url) as file:
                for (table,) in file.execute("SHOW TABLES").fetchall():
                    relation = file.table(table)
                    found[table] = [
                        dict(zip(relation.columns, row, strict=True)) for row in relation.fetchall()
                    ]
        case _:
            with postgres(url) as server:
                tables = server.execute(
                    "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
                ).fetchall()
                for (table,) in tables:
                    everything = sql.SQL("SELECT * FROM {}").format(sql.Identifier(table))
                    cursor = server.cursor(row_factory=psycopg.rows.dict_row)
                    found[table] = cursor.execute(everything).fetchall()
    return found
