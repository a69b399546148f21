"""Postgres' SQL dialect: its types, and where it differs from DuckDB."""

from typing import Any

from herdbook.adapters.sql.dialect import Dialect
from herdbook.ports.engine.codec import utc

TEXT = 'text COLLATE "C"'


def _as_is(value: Any) -> Any:
    return value


POSTGRES = Dialect(
    parameter="%s",
    types={
        "id": TEXT,
        "name": TEXT,
        "text": TEXT,
        "choice": TEXT,
        "stamp": TEXT,
        "secret": TEXT,
        "integer": "bigint",
        "number choice": "bigint",
        "flag": "boolean",
        "moment": "timestamptz",
        "document": "json",
        "bytes": "bytea",
    },
    array_types={
        "id": "text",
        "name": "text",
        "text": "text",
        "choice": "text",
        "stamp": "text",
        "secret": "text",
        "integer": "bigint",
        "number choice": "bigint",
        "flag": "boolean",
        "moment": "timestamptz",
        "document": "json",
        "bytes": "bytea",
    },
    moment_to_db=_as_is,
    moment_from_db=utc,
    among=lambda column, values: f"{column} = ANY({values})",
    hash_of=lambda text: f"md5({text})",
)
