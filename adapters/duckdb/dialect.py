"""DuckDB's SQL dialect: its types, and where it differs from Postgres. Needs no driver."""

from herdbook.adapters.sql.dialect import Dialect, drop_zone
from herdbook.ports.engine.codec import as_utc

_TYPES = {
    **dict.fromkeys(("id", "name", "text", "choice", "stamp", "secret"), "VARCHAR"),
    **dict.fromkeys(("integer", "number choice"), "BIGINT"),
    "flag": "BOOLEAN",
    "moment": "TIMESTAMP",
    "document": "JSON",
    "bytes": "BLOB",
}
DUCKDB = Dialect(
    parameter="?",
    types=_TYPES,
    array_types=_TYPES,
    # Fetching TIMESTAMP WITH TIME ZONE would need another package: UTC by convention.
    moment_to_db=drop_zone,
    moment_from_db=as_utc,
    counts_changes=True,
    among=lambda column, values: f"{column} IN (SELECT unnest({values}))",
)
