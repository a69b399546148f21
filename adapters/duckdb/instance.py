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
    # Every checkpoint is the caller's to begin, because what it overwrites is copied first
    # (`rollback`). Left alone, DuckDB begins one at a detach, at its end, at a large commit, and
    # when the log has grown.
    "checkpoint_on_detach": "DISABLED",
    "wal_autocheckpoint": "1TB",
    "auto_checkpoint_skip_wal_threshold": 1 << 50,
}


def open_instance(
    paths: Sequence[str],
    *,
    spill: str = "",
    settings: Mapping[str, Setting] | None = None,
) -> duckdb.DuckDBPyConnection:
    """An instance that may open `paths` and write temporary files into the folder `spill`.

    Without `spill` it writes none. Its configuration cannot be changed any more, and no extension
    that is not built in can be installed or loaded. It begins no checkpoint by itself. Raises
    duckdb.Error.
    """
    config = {**_SETTINGS, "temp_directory": spill, **(settings or {})}
    instance = duckdb.connect(":memory:", config=config)
    try:
        instance.execute("PRAGMA disable_checkpoint_on_shutdown")
        instance.execute("SET TimeZone = 'UTC'")
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
