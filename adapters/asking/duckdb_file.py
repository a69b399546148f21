"""Ask a DuckDB file: read-only, under our lock, in an instance of its own."""

from secrets import token_hex

import duckdb

from herdbook.adapters.asking.answer import Answer
from herdbook.adapters.asking.masks import visible
from herdbook.adapters.asking.sandbox import ask_sandbox
from herdbook.adapters.duckdb import place
from herdbook.adapters.duckdb.sharing import SharedFile
from herdbook.adapters.sql.dialect import quoted
from herdbook.adapters.urls import path_of
from herdbook.ports.store import Store


def ask_file(store: Store, sql: str, *, patience: float, limit: int) -> Answer:
    """The answer of a DuckDB store's file.

    Its tables are seen through views that hide what is secret. The file itself is attached under a
    name made for this one query, which the query cannot know.
    """
    path = path_of(store.url)
    within = f"herd_{token_hex(16)}.main"

    def furnish(connection: duckdb.DuckDBPyConnection, _: set[str]) -> None:
        literal = str(path).replace("'", "''")
        catalog = within.partition(".")[0]
        connection.execute(f"ATTACH '{literal}' AS {catalog} (TYPE duckdb, READ_ONLY)")
        for kind in store.dictionary:
            name = quoted(kind.name)
            columns = visible(kind)
            connection.execute(f"CREATE VIEW {name} AS SELECT {columns} FROM {within}.{name}")

    file = SharedFile(path, patience=patience)
    try:
        with file.lent(write=False):
            place.require_database(path)
            return ask_sandbox(
                store.dictionary, furnish, sql, place=str(path), patience=patience, limit=limit
            )
    finally:
        file.close()
