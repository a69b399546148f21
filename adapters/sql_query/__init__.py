"""SQL over any store: one read-only query, and the engine's own shell.

`query.ask` is the entry point. A DuckDB file (`duckdb_file`) and the rows of a store without SQL
(`duckdb_copy`) are queried in a separate process: `sandbox` starts it, `sandbox_process` runs
there, and `duckdb_syntax` refuses everything that it does not know as harmless. Messages between
the two are `frames`, in which rows travel as `result_values`. `postgres` queries a server,
`postgres_lexer` reads its SQL, `redaction` hides secrets, and `native_shell` starts `psql` or
`duckdb`. None of this is an engine: it uses them.

In every answer the fields of the dictionary that are secret read `***`. The engines' own shells
show what the engine shows.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from herdbook.adapters.sql_query.query import ask
    from herdbook.adapters.sql_query.result import Answer

__all__ = ["Answer", "ask"]


def __getattr__(name: str) -> Any:
    # The process that runs a query is in this package too, and does not import the dictionary.
    if name == "Answer":
        from herdbook.adapters.sql_query.result import Answer  # noqa: PLC0415

        return Answer
    if name == "ask":
        from herdbook.adapters.sql_query.query import ask  # noqa: PLC0415

        return ask
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
