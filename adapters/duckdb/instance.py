"""DuckDB instances in memory that reach the files they are given and no others.

A database file can hold views and macros that read or write any file, so an instance is closed off
before it attaches one: DuckDB itself refuses every path that is not on its list.
"""

from collections.abc import Mapping, Sequence

import duckdb

Setting = str | bool | int | float | list[str]

_SETTINGS: dict[str, Setting] = {
    "threads": 1,
    "async_threads": 0,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_community_extensions": False,
    "allow_persistent_secrets": False,
    "python_enable_replacements": False,
    # DuckDB 2.0.0 fetches the rows of ORDER BY … LIMIT by their row ids in a second scan,
    # and now and then (7 in 9,000) loses committed ones where some are not committed yet.
    "disabled_optimizers": "late_materialization",
}


def open_instance(
    paths: Sequence[str],
    *,
    spill: str = "",
    settings: Mapping[str, Setting] | None = None,
) -> duckdb.DuckDBPyConnection:
    """An instance that may open `paths` and write temporary files into the folder `spill`.

    Without `spill` it writes none. Its configuration cannot be changed any more, and no extension
    that is not built in can be installed or loaded. Raises duckdb.Error.
    """
    config = {**_SETTINGS, "temp_directory": spill, **(settings or {})}
    instance = duckdb.connect(":memory:", config=config)
    try:
        # In this order: the list cannot be set any more where access is off, and nothing can be
        # where the configuration is locked. The folder for temporary files is allowed by itself.
        allowed = ", ".join(map(_literal, paths))
        instance.execute(f"SET allowed_paths = [{allowed}]")
        instance.execute("SET enable_external_access = false")
        instance.execute("SET lock_configuration = true")
    except BaseException:
        instance.close()
        raise
    return instance


def _literal(text: str) -> str:
    quoted = text.replace("'", "''")
    return f"'{quoted}'"
