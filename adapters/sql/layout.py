"""Tables, columns and indexes of a dictionary, and the statements that upgrade an older layout."""

import json
from collections.abc import Iterator
from typing import Any
from zlib import crc32

from herdbook.adapters.sql.dialect import Dialect, default_literal, quote_name
from herdbook.ports.engine.dictionary import HEADS
from herdbook.ports.engine.kinds import Column, Dictionary, Kind, Unique

Catalogue = dict[str, dict[str, Any]]


def catalogue(dictionary: Dictionary) -> Catalogue:
    """The record of its own layout that a store keeps."""
    return {
        kind.name: {
            "columns": list(kind.columns),
            "lookups": [list(lookup) for lookup in kind.all_lookups],
        }
        for kind in dictionary
    }


def catalogue_json(dictionary: Dictionary) -> str:
    """The catalogue as JSON text."""
    return json.dumps(catalogue(dictionary))


def migration_statements(
    dictionary: Dictionary, known: Catalogue, dialect: Dialect, within: str
) -> Iterator[str]:
    """The statements that bring a store from a known catalogue to the dictionary, one at a time."""
    for kind in dictionary:
        there = known.get(kind.name)
        if there is None:
            yield _table(kind, dialect, within)
        else:
            for name, column in kind.columns.items():
                if name not in there["columns"]:
                    yield _column(kind, column, dialect, within)
        if dialect.hash_of:
            had = {tuple(lookup) for lookup in (there or {"lookups": []})["lookups"]}
            for lookup in had - set(kind.all_lookups):
                yield f"DROP INDEX IF EXISTS {within}.{_label(kind, lookup)}"
            for lookup in kind.all_lookups:
                if lookup not in had:
                    yield _index(kind, lookup, dialect, within)


def upgrade_heads(dictionary: Dictionary, within: str) -> str:
    """The statement that keeps older programs from writing."""
    return (
        f"UPDATE {within}.{quote_name(HEADS.name)} SET schema_version = {dictionary.version:d}, "
        f"oldest_writer = {dictionary.oldest_writer:d}"
    )


def _table(kind: Kind[Any], dialect: Dialect, within: str) -> str:
    space = dialect.types["id"]
    columns = ", ".join(
        f"{quote_name(c.name)} {dialect.types[c.type_name]}{'' if c.optional else ' NOT NULL'}"
        for c in kind.columns.values()
    )
    return (
        f"CREATE TABLE IF NOT EXISTS {within}.{quote_name(kind.name)} "
        f"(space {space} NOT NULL, {columns}, PRIMARY KEY (space, {quote_name(kind.key)}))"
    )


def _column(kind: Kind[Any], column: Column, dialect: Dialect, within: str) -> str:
    if not (column.has_default or column.optional):
        raise TypeError(f"{kind.name}.{column.name} is new, so it needs a default")
    default = column.default if column.has_default else None
    convert = dialect.to_db(column)
    value = default if default is None or convert is None else convert(default)
    return (
        f"ALTER TABLE {within}.{quote_name(kind.name)} "
        f"ADD COLUMN IF NOT EXISTS {quote_name(column.name)} "
        f"{dialect.types[column.type_name]} DEFAULT {default_literal(value)}"
    )


def _label(kind: Kind[Any], lookup: tuple[str, ...]) -> str:
    return quote_name(f"{kind.name}_{crc32(','.join(lookup).encode()):08x}")


def _index(kind: Kind[Any], lookup: tuple[str, ...], dialect: Dialect, within: str) -> str:
    unique: Unique | None = next((u for u in kind.uniques if u.lookup == lookup), None)
    names = unique.fields if unique else lookup
    hash_of = dialect.hash_of or quote_name
    parts = [
        f"({hash_of(quote_name(name))})"
        if kind.columns[name].type_name == "name"
        else quote_name(name)
        for name in names
    ]
    if unique is None:
        parts.append(quote_name(kind.key))
    where = f" WHERE {quote_name(unique.when_none)} IS NULL" if unique and unique.when_none else ""
    return (
        f"CREATE {'UNIQUE ' if unique else ''}INDEX IF NOT EXISTS {_label(kind, lookup)} "
        f"ON {within}.{quote_name(kind.name)} (space, {', '.join(parts)}){where}"
    )
