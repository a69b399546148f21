"""A DuckDB in this process's memory that can be asked, and can do nothing else."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

import duckdb

from herdbook.adapters.asking.answer import (
    ONE_QUERY,
    Answer,
    answer_of,
    first_line,
    refused,
    too_slow,
)
from herdbook.adapters.asking.syntax import Node, tables_in, tree_of
from herdbook.adapters.duckdb.errors import translated
from herdbook.ports.kinds import Dictionary

Furnish = Callable[[duckdb.DuckDBPyConnection, set[str]], None]
"""Puts the tables in that a query names, and opens what it must before the doors are shut."""

LEAST_TIME = 0.05
_ZONED = "TIMESTAMP WITH TIME ZONE"
_MISTAKES = (
    duckdb.ProgrammingError,
    duckdb.DataError,
    duckdb.NotSupportedError,
    duckdb.IntegrityError,
    duckdb.PermissionException,
)
_CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "threads": 1,
    "async_threads": 0,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_community_extensions": False,
    "allow_persistent_secrets": False,
    "python_enable_replacements": False,
    "temp_directory": "",
    # See adapters/duckdb/engine.py: it loses rows.
    "disabled_optimizers": "late_materialization",
}


def ask_sandbox(
    dictionary: Dictionary,
    furnish: Furnish,
    sql: str,
    *,
    place: str,
    patience: float,
    limit: int,
    begun: float | None = None,
) -> Answer:
    """Check a query, furnish a sandbox with what it asks for, shut the doors, and ask.

    The query may take `patience` seconds, which count from `begun` on where that is given.
    """
    with _instance() as connection:
        try:
            tree = tree_of(connection, sql)
            furnish(connection, tables_in(tree, dictionary.kinds))
            connection.execute("SET enable_external_access = false")
            connection.execute("SET lock_configuration = true")
            left = patience if begun is None else begun + patience - monotonic()
            if left <= 0:
                raise too_slow(patience)
            # An interrupt that comes before the query begins would not end it.
            return _answered(connection, tree, sql, max(left, LEAST_TIME), limit)
        except duckdb.InterruptException as error:
            raise too_slow(patience) from error
        except duckdb.OutOfMemoryException as error:
            raise refused("needs more memory than there is; ask for less") from error
        except _MISTAKES as error:
            raise refused(first_line(error)) from error
        except duckdb.Error as error:
            raise translated(error, place) from error


@contextmanager
def _instance() -> Iterator[duckdb.DuckDBPyConnection]:
    connection = duckdb.connect(":memory:", config=_CONFIG)
    try:
        connection.execute("SET TimeZone = 'UTC'")
        yield connection
    finally:
        connection.close()


def _answered(
    connection: duckdb.DuckDBPyConnection, tree: Node, sql: str, patience: float, limit: int
) -> Answer:
    (statement,) = connection.extract_statements(sql)
    if statement.type is not duckdb.StatementType.SELECT:
        raise refused(ONE_QUERY)
    if statement.named_parameters:
        raise refused("has parameters, to which nobody gives values")
    timer = threading.Timer(patience, connection.interrupt)
    timer.daemon = True
    timer.start()
    try:
        asked = connection.execute(statement)
        columns = [(str(name), str(type_name)) for name, type_name, *_ in asked.description]
        zoned = {type_name for _, type_name in columns if _ZONED in type_name}
        if zoned - {_ZONED}:
            raise refused("has a time with a zone in a list or a struct; cast it to TIMESTAMP")
        if zoned:
            asked = connection.execute(_without_zones(connection, tree, columns))
        fetched = asked.fetchmany(limit + 1)
    finally:
        timer.cancel()
        timer.join()
    documents = [at for at, (_, type_name) in enumerate(columns) if type_name == "JSON"]
    return answer_of((name for name, _ in columns), fetched, documents, limit)


def _without_zones(
    connection: duckdb.DuckDBPyConnection, tree: Node, columns: list[tuple[str, str]]
) -> str:
    """The same query with its times in UTC and without a zone: others need one more package."""
    written = connection.execute(
        "SELECT json_deserialize_sql(?::JSON)", [json.dumps(tree)]
    ).fetchall()
    names = [f"c{at}" for at in range(len(columns))]
    chosen = [
        f"CAST({name} AS TIMESTAMP)" if type_name == _ZONED else name
        for name, (_, type_name) in zip(names, columns, strict=True)
    ]
    return f"SELECT {', '.join(chosen)} FROM ({written[0][0]}) AS answer({', '.join(names)})"
