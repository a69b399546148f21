"""The DuckDB engine, as the rest of Herdbook knows it."""

from types import MappingProxyType

from herdbook.adapters.stores.engine_spec import EngineSpec, Medium

OLDEST_PROGRAM = 2
"""The oldest version of DuckDB's own program that can read the files of this one."""

SPEC = EngineSpec(
    schemes=("duckdb",),
    medium=Medium.FILE,
    store="herdbook.adapters.duckdb.store:DuckDBStore",
    options=("clock", "create"),
    probe="herdbook.adapters.duckdb.probe:probe",
    is_missing="herdbook.adapters.duckdb.probe:is_missing",
    query="herdbook.adapters.sql_query.duckdb_file:query_file",
    native_shell="herdbook.adapters.duckdb.native_shell:open_shell",
    native_shell_needs=(
        f"needs DuckDB's program `duckdb`, version {OLDEST_PROGRAM} or newer, on the PATH"
    ),
    broker="herdbook.adapters.duckdb.broker.start:start_broker",
    readers_block_writers=True,
    driver="duckdb",
    extra="duckdb",
    safe_configuration=MappingProxyType(
        {
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
            # (`rollback_journal`). Left alone, DuckDB begins one at a detach, at its end, at a
            # large commit, and when the log has grown.
            "checkpoint_on_detach": "DISABLED",
            "wal_autocheckpoint": "1TB",
            "auto_checkpoint_skip_wal_threshold": 1 << 50,
        }
    ),
)
