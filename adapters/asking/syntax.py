"""What a query in DuckDB's SQL reaches for, found in the tree that DuckDB's own parser makes of it.

What is not known as harmless is refused. DuckDB's settings alone would not do: with all access to
files switched off it still reads the files that are attached, by their path, past any view.
"""

import json
import re
from collections.abc import Collection, Iterator
from typing import Any

import duckdb

from herdbook.adapters.asking.answer import ONE_QUERY, refused

_QUERIES = {"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"}
_SOURCES = {"EMPTY", "BASE_TABLE", "SUBQUERY", "JOIN", "TABLE_FUNCTION", "EXPRESSION_LIST"}
_SHOWN = {"", '"tables"'}
_FUNCTIONS = {"generate_series", "range", "repeat", "unnest", "json_each", "json_tree"}
_SCHEMAS = {"", "main"}

Node = dict[str, Any]


def tree_of(connection: duckdb.DuckDBPyConnection, sql: str) -> Node:
    """The one query in the text, as DuckDB understands it."""
    (written,) = connection.execute("SELECT json_serialize_sql(?::VARCHAR)", [sql]).fetchall()[0]
    tree: Node = json.loads(written)
    if tree["error"]:
        if tree["error_type"] == "parser":
            raise refused(str(tree["error_message"]).partition("\n")[0])
        raise refused(ONE_QUERY)
    if len(tree["statements"]) != 1:
        raise refused(ONE_QUERY)
    return tree


def tables_in(tree: Node, known: Collection[str]) -> set[str]:
    """The tables that a query names; refuses one that reaches for anything but those known."""
    nodes = list(_nodes(tree["statements"]))
    named = set(_named_queries(nodes))
    found = set()
    for node in nodes:
        match node:
            case {"class": _}:
                continue  # an expression; what it asks for inside is a node of its own
            case {"type": "BASE_TABLE" | "SHOW_REF", "table_name": str(name)}:
                if _table(node, name, {*known, *named}):
                    found.add(name.lower())
            case {"type": "TABLE_FUNCTION", "function": {"function_name": str(name)}}:
                if name.lower() not in _FUNCTIONS:
                    raise refused(f"may not use the function {name}")
            case {"type": str(kind)} if kind.endswith("_NODE") and kind not in _QUERIES:
                raise refused(ONE_QUERY)
            case {"type": str(kind), "sample": _, "alias": _} if kind not in _SOURCES:
                raise refused(f"may not use {kind.lower().replace('_', ' ')}")
    return found & set(known)


def _table(node: Node, name: str, known: Collection[str]) -> bool:
    if node["type"] == "SHOW_REF" and name in _SHOWN:
        return False
    if node["catalog_name"] or node["schema_name"].lower() not in _SCHEMAS:
        raise refused(f"must call the table {name} by its name alone")
    if name.lower() not in known:
        raise refused(f"{name!r} is no table of this store")
    return True


def _named_queries(nodes: list[Node]) -> Iterator[str]:
    for node in nodes:
        for entry in node.get("cte_map", {}).get("map", ()):
            name = str(entry["key"])
            if not re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name):
                # Where it does not hold, the same name could be that of a file.
                raise refused(f"{name!r} cannot be the name of a part of a query")
            yield name.lower()


def _nodes(part: Any) -> Iterator[Node]:
    if isinstance(part, dict):
        yield part
        part = list(part.values())
    if isinstance(part, list):
        for each in part:
            yield from _nodes(each)
