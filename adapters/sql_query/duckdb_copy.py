"""Queries a store without SQL: its rows are copied to a DuckDB in another process."""

import json
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from importlib.util import find_spec
from typing import Any

from herdbook.adapters.duckdb.dialect import DUCKDB
from herdbook.adapters.sql.dialect import quote_name
from herdbook.adapters.sql.layout import migration_statements
from herdbook.adapters.sql_query.result import Answer
from herdbook.adapters.sql_query.sandbox import NO_DUCKDB, Deadline, Tables, query_sandbox
from herdbook.domain.errors import StoreUnavailable
from herdbook.domain.secret import HIDDEN
from herdbook.ports.engine.kinds import Column, Dictionary, Kind
from herdbook.ports.engine.paging import select_pages
from herdbook.ports.engine.store import Store

WITHIN = "memory.main"

Encode = Callable[[Any], Any]


def query_copy(store: Store, _url: str, sql: str, *, deadline: Deadline, limit: int) -> Answer:
    """Answer a query over the rows of the tables that it names, without their secrets.

    A space is read in one transaction, as it was at one moment. Raises what `query_sandbox` raises.
    """

    def feed(named: list[str]) -> Iterator[tuple[str, dict[str, list[Any]]]]:
        kinds = [kind for kind in store.dictionary if kind.name in named]
        for space in store.spaces() if kinds else ():
            with store.transaction(space, write=False) as session:
                for kind in kinds:
                    for rows in select_pages(session, kind):
                        yield kind.name, _columns(kind, space, rows)

    if find_spec("duckdb") is None:
        raise StoreUnavailable(store.url, NO_DUCKDB)
    tables = _tables(store.dictionary)
    return query_sandbox(sql, tables, place=store.url, deadline=deadline, limit=limit, feed=feed)


def _tables(dictionary: Dictionary) -> Tables:
    statements = zip(dictionary, migration_statements(dictionary, {}, DUCKDB, WITHIN), strict=True)
    return {kind.name: {"create": sql, "insert": _insert(kind)} for kind, sql in statements}


def _insert(kind: Kind[Any]) -> str:
    """The statement that inserts a list for each column, all of them in one JSON parameter."""
    types = {"space": "VARCHAR"}
    values = {"space": 'unnest(lists."space")'}
    for name, column in kind.columns.items():
        values[name] = f"unnest(lists.{quote_name(name)})"
        types[name] = DUCKDB.types[column.type_name]
        if types[name] in {"BLOB", "JSON"}:
            types[name] = "VARCHAR"
        if column.type_name == "bytes":
            values[name] = f"from_base64({values[name]})"
    layout = json.dumps({name: [each] for name, each in types.items()})
    return (
        f"INSERT INTO {WITHIN}.{quote_name(kind.name)} ({', '.join(map(quote_name, values))}) "
        f"SELECT {', '.join(values.values())} FROM (SELECT from_json(?, '{layout}') AS lists)"
    )


def _columns(kind: Kind[Any], space: str, rows: Sequence[Any]) -> dict[str, list[Any]]:
    """The rows as JSON can carry them, a list for each column, with stars for secrets."""
    columns: dict[str, list[Any]] = {"space": [space] * len(rows)}
    held = [vars(row) for row in rows]
    for name, column in kind.columns.items():
        encode = _encode(column)
        values = [each[name] for each in held]
        columns[name] = (
            values if encode is None else [None if v is None else encode(v) for v in values]
        )
    return columns


def _encode(column: Column) -> Encode | None:
    match column.type_name:
        case "secret":
            return lambda _: HIDDEN
        case "bytes":
            return lambda value: b64encode(value).decode()
        case "moment":
            return lambda value: datetime.isoformat(DUCKDB.moment_to_db(value), " ")
    return DUCKDB.to_db(column)
