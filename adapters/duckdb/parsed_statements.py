"""Executes statements that DuckDB has parsed before.

Parsing takes half of the time of a small query: getting one row by its key takes 0.85 ms from its
text and 0.43 ms parsed. A parsed statement belongs to no instance, so all stores of a process share
them; each execution works on a copy of it.
"""

from collections.abc import Sequence
from typing import Any

import duckdb

_MOST = 500
"""How many statements are kept, of 9 KB each; a store has about 300 that are executed often."""

_PARSED: dict[str, duckdb.Statement] = {}


def execute(
    cursor: duckdb.DuckDBPyConnection, sql: str, parameters: Sequence[Any] | None = None
) -> duckdb.DuckDBPyConnection:
    """Execute one statement. Raises duckdb.Error."""
    statement = _PARSED.get(sql)
    if statement is None:
        (statement,) = cursor.extract_statements(sql)
        if len(_PARSED) >= _MOST:
            _PARSED.clear()
        _PARSED[sql] = statement
    return cursor.execute(statement, parameters)
