"""Opens DuckDB instances in memory that reach the files they are given and no others.

A database file can hold views and macros that read or write any file, so an instance is restricted
before it attaches one: DuckDB itself refuses every path that is not on its list.
"""

from collections.abc import Mapping, Sequence

import duckdb

from herdbook.adapters.duckdb.spec import SPEC
from herdbook.adapters.stores.engine_spec import ConfigValue


def open_instance(
    paths: Sequence[str],
    *,
    spill: str = "",
    settings: Mapping[str, ConfigValue] | None = None,
) -> duckdb.DuckDBPyConnection:
    """Open an instance that may open `paths` and write temporary files into the folder `spill`.

    Without `spill` it writes none. It runs under the engine's safe configuration (`spec`) and
    `settings`; its configuration cannot be changed any more, and no extension that is not built in
    can be installed or loaded. It begins no checkpoint by itself. Raises duckdb.Error.
    """
    config = {**SPEC.safe_configuration, "temp_directory": spill, **(settings or {})}
    instance = duckdb.connect(":memory:", config=config)
    try:
        instance.execute("PRAGMA disable_checkpoint_on_shutdown")
        instance.execute("SET TimeZone = 'UTC'")
        # In this order: the list cannot be set once access is off, and nothing can be set once
        # the configuration is locked. The folder for temporary files is always allowed.
        allowed = ", ".join(map(quote_text, paths))
        instance.execute(f"SET allowed_paths = [{allowed}]")
        instance.execute("SET enable_external_access = false")
        instance.execute("SET lock_configuration = true")
    except BaseException:
        instance.close()
        raise
    return instance


def quote_text(text: str) -> str:
    """A text as an SQL literal, for statements that take no parameters."""
    quoted = text.replace("'", "''")
    return f"'{quoted}'"
