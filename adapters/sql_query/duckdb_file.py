"""Queries a DuckDB file: read-only, under our lock, in a separate process."""

from pathlib import Path

from herdbook.adapters.duckdb import file_checks
from herdbook.adapters.duckdb.file_access import SharedFile
from herdbook.adapters.sql_query.redaction import redacted_columns
from herdbook.adapters.sql_query.result import Answer
from herdbook.adapters.sql_query.sandbox import Deadline, query_sandbox
from herdbook.adapters.stores.urls import path_of
from herdbook.ports.engine.store import Store


def query_file(store: Store, _url: str, sql: str, *, deadline: Deadline, limit: int) -> Answer:
    """Answer a query over a DuckDB store's file, whose tables are seen without secrets.

    Raises what `SharedFile.hold_lock` and `query_sandbox` raise.
    """
    tables = {kind.name: {"visible": redacted_columns(kind)} for kind in store.dictionary}
    file = SharedFile(path_of(store.url), patience=deadline.seconds_left)
    try:
        with file.hold_lock(write=False):
            path = file.real_path
            file_checks.require_database(path)
            return query_sandbox(
                sql,
                tables,
                place=str(path),
                deadline=deadline,
                limit=limit,
                paths=[Path(each) for each in file_checks.allowed_paths(path)],
            )
    finally:
        file.close()
