"""SQL over any store: one read-only query, and how to start an engine's own prompt.

`stores.ask` is the way in. A DuckDB file (`duckdb_file`) and the rows of a store that knows no SQL
(`lending`) are asked in a process of their own: `sandbox` starts it, `sandbox_process` is what runs
there, and `syntax` holds back whatever it does not know as harmless. Messages between the two are
`frames`, in which rows travel as `values`. `postgres` asks a server, `words` reads its SQL, `masks`
hides secrets, and `programs` says how to start `psql` or `duckdb`. None of this is an engine: it
stands on them.

In every answer the fields of the dictionary that are secret read `***`. The engines' own prompts
show what the engine shows.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from herdbook.adapters.sql_query.query import ask
    from herdbook.adapters.sql_query.result import Answer

__all__ = ["Answer", "ask"]


def __getattr__(name: str) -> Any:
    # The process that runs a query is in this package too, and starts without the dictionary.
    if name == "Answer":
        from herdbook.adapters.sql_query.result import Answer  # noqa: PLC0415

        return Answer
    if name == "ask":
        from herdbook.adapters.sql_query.query import ask  # noqa: PLC0415

        return ask
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
