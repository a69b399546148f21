"""Reads a store file's description of itself, and checks that it holds nothing but tables of rows.

A DuckDB file can hold views, macros, defaults, generated columns and triggers, and all of these run
when a table is read or written. Herdbook creates none of them, so a file that has one was made or
changed by somebody else, and is refused before a row of any of its tables is read.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import duckdb
from attrs import frozen

from herdbook.adapters.duckdb.database_instance import CATALOG
from herdbook.adapters.duckdb.errors import translate_errors
from herdbook.adapters.sql.dialect import Dialect
from herdbook.adapters.sql.layout import Catalogue
from herdbook.domain.errors import StoreDamaged
from herdbook.ports.engine.kinds import Dictionary

STORE = {"uuid": "VARCHAR", "schema_version": "BIGINT", "catalogue": "VARCHAR"}
"""The table that describes the store."""

_OTHERS_OBJECTS = """
SELECT 'a view', view_name FROM duckdb_views() WHERE database_name = $1 AND NOT internal
UNION ALL
SELECT 'a macro', function_name FROM duckdb_functions() WHERE database_name = $1 AND NOT internal
UNION ALL
SELECT 'a trigger', trigger_name FROM duckdb_triggers() WHERE database_name = $1
UNION ALL
SELECT 'a type', type_name FROM duckdb_types() WHERE database_name = $1 AND NOT internal
UNION ALL
SELECT 'a sequence', sequence_name FROM duckdb_sequences() WHERE database_name = $1
UNION ALL
SELECT 'an index', index_name FROM duckdb_indexes() WHERE database_name = $1
UNION ALL
SELECT 'a schema', schema_name FROM duckdb_schemas()
WHERE database_name = $1 AND schema_name <> 'main'
UNION ALL
SELECT 'a constraint', constraint_text FROM duckdb_constraints()
WHERE database_name = $1 AND constraint_type NOT IN ('NOT NULL', 'PRIMARY KEY')
LIMIT 1
"""
_COLUMNS = """
SELECT table_name, column_name, data_type, column_default, is_generated
FROM duckdb_columns() WHERE database_name = $1 AND NOT internal
"""
_CONSTANT = re.compile(
    r"NULL|true|false|-?\d+|'(?:[^']|'')*'|CAST\('(?:[^']|'')*' AS [A-Z]+\)", re.DOTALL
)
"""A default that calls no function; an upgrade leaves some."""


@frozen
class Description:
    """Which store a file holds, its schema version, and the columns of that schema."""

    uuid: str
    schema_version: int
    catalogue: Catalogue


def read_description(
    cursor: duckdb.DuckDBPyConnection, dictionary: Dictionary, dialect: Dialect, place: str
) -> Description:
    """The attached file's description of itself, read after checking that nothing in it can run.

    Raises StoreDamaged if it holds anything but tables, or tables of ours with another layout than
    its schema version says.
    """
    with translate_errors(place):
        tables = _read_tables(cursor, place)
        if tables.get("store") != STORE:
            raise _foreign_error(place)
        foreign = cursor.execute(_OTHERS_OBJECTS, [CATALOG]).fetchone()
        if foreign is not None:
            raise _foreign_error(place, f"{foreign[0]} ({foreign[1]})")
        row = cursor.execute(f"SELECT {', '.join(STORE)} FROM {CATALOG}.main.store").fetchone()
    if row is None:
        raise StoreDamaged(place, "it does not say which store it is")
    described = Description(row[0], row[1], _read_catalogue(row[2], place))
    for problem in _find_problems(described, tables, dictionary, dialect):
        raise StoreDamaged(place, problem)
    return described


def _read_tables(cursor: duckdb.DuckDBPyConnection, place: str) -> dict[str, dict[str, str]]:
    """The columns and types of each table or view, none of which computes anything."""
    tables: dict[str, dict[str, str]] = {}
    for table, column, type_name, default, generated in cursor.execute(
        _COLUMNS, [CATALOG]
    ).fetchall():
        if generated or (default is not None and not _CONSTANT.fullmatch(default)):
            raise _foreign_error(place, f"a column that calls functions ({table}.{column})")
        tables.setdefault(table, {})[column] = type_name
    return tables


def _read_catalogue(text: str, place: str) -> Catalogue:
    try:
        match json.loads(text):
            case dict(catalogue) if all(map(_is_entry, catalogue.values())):
                return catalogue
    except (ValueError, RecursionError) as error:
        raise StoreDamaged(place, "what it says of its tables cannot be read") from error
    raise StoreDamaged(place, "what it says of its tables cannot be read")


def _is_entry(entry: Any) -> bool:
    match entry:
        case {"columns": list(columns), "lookups": list()}:
            return all(isinstance(each, str) for each in columns)
    return False


def _find_problems(
    described: Description,
    tables: Mapping[str, Mapping[str, str]],
    dictionary: Dictionary,
    dialect: Dialect,
) -> Iterator[str]:
    """How the tables of the dictionary differ from what the file says that it has.

    A newer schema may have anything; opening it raises StoreTooNew.
    """
    if described.schema_version > dictionary.version:
        return
    is_current = described.schema_version == dictionary.version
    for kind in dictionary.kinds.values():
        there = tables.get(kind.name)
        if there is None:
            if is_current or kind.name in described.catalogue:
                yield f"its table {kind.name} is missing"
            continue
        wanted = {"space": dialect.types["id"]} | {
            name: dialect.types[column.type_name] for name, column in kind.columns.items()
        }
        # An older file lacks columns. An interrupted upgrade may have added some already.
        expected = wanted if is_current else {n: each for n, each in wanted.items() if n in there}
        if there != expected:
            yield f"its table {kind.name} has other columns than it should"


def _foreign_error(place: str, what: str = "") -> StoreDamaged:
    added = f": it holds {what}, which Herdbook never makes" if what else ""
    return StoreDamaged(place, f"it is another program's database{added}")
