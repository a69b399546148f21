"""Postgres' SQL dialect: its types, and where it differs from DuckDB."""

from typing import Any

from herdbook.adapters.sql.dialect import Dialect
from herdbook.ports.engine.codec import as_utc

TEXT = 'text COLLATE "C"'

_TYPES = {
    **dict.fromkeys(("id", "name", "text", "choice", "stamp", "secret"), "text"),
    **dict.fromkeys(("integer", "number choice"), "bigint"),
    "flag": "boolean",
    "moment": "timestamptz",
    "document": "json",
    "bytes": "bytea",
}


def _as_is(value: Any) -> Any:
    return value


POSTGRES = Dialect(
    parameter="%s",
    types={name: TEXT if each == "text" else each for name, each in _TYPES.items()},
    array_types=_TYPES,
    moment_to_db=_as_is,
    moment_from_db=as_utc,
    among=lambda column, values: f"{column} = ANY({values})",
    hash_of=lambda text: f"md5({text})",
)
