"""Finds what a query in DuckDB's SQL uses, in the tree of DuckDB's own parser.

What is not known as harmless is refused. DuckDB's settings alone would not do: with all access to
files switched off it still reads the files that are attached, by their path, past any view.

A name that a query gives to a part of itself (`WITH part AS …`) counts where DuckDB sees it and
nowhere else: outside of that, the same name would be that of a view of DuckDB's own or of a file.
"""

import json
import re
from collections.abc import Collection
from typing import Any

import duckdb

from herdbook.adapters.sql_query.refusal import ONE_QUERY, query_error

Node = dict[str, Any]

_QUERIES = {"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"}
_SOURCES = {"EMPTY", "SUBQUERY", "JOIN", "EXPRESSION_LIST"}
_PARTS = re.compile(
    r"(ORDER|LIMIT|LIMIT_PERCENT|DISTINCT)_MODIFIER|\w+_TYPE_INFO|ORDER_\w+|\w+CENDING"
)
"""Other nodes that have a type: query modifiers, orders of rows, and column types."""
_SHOWN = {"", '"tables"'}
_TABLE_FUNCTIONS = {"generate_series", "range", "repeat", "unnest", "json_each", "json_tree"}
_FORBIDDEN = re.compile(
    r"""(?x) pg_(?!typeof$|size_pretty$).* | current_setting | getvariable | get_block_size
    | (col|obj|shobj)_description | has_\w+_privilege | write_log | nextval | currval | setval
    | (duckdb|pragma|read|parquet|sniff|query|json_execute)_.* | query | glob | getenv
    | format_type | which_secret | force_checkpoint | checkpoint | __internal_.* """
)
"""Functions that read settings, catalogs or files; some are macros over DuckDB's own views."""
_OF_DUCKDB = re.compile(r"(duckdb|pg|sqlite|pragma|information_schema)(_.*)?")
"""Names of DuckDB's own views."""
_NAME = re.compile("[A-Za-z_][A-Za-z0-9_]*")


def parse_query(connection: duckdb.DuckDBPyConnection, sql: str) -> Node:
    """The tree of the one query in a text, from DuckDB's parser. Raises InvalidValue."""
    (written,) = connection.execute("SELECT json_serialize_sql(?::VARCHAR)", [sql]).fetchall()[0]
    tree: Node = json.loads(written)
    if tree["error"]:
        if tree["error_type"] == "parser":
            raise query_error(str(tree["error_message"]).partition("\n")[0])
        raise query_error(ONE_QUERY)
    if len(tree["statements"]) != 1:
        raise query_error(ONE_QUERY)
    return tree


def find_tables(tree: Node, known: Collection[str]) -> set[str]:
    """The tables that a query names. Raises InvalidValue if it uses anything but the known ones."""
    reading = _TableFinder(frozenset(known))
    reading.visit(tree["statements"], frozenset())
    return reading.found


class _TableFinder:
    """One walk through a tree, with the names that are visible at each node."""

    def __init__(self, known: frozenset[str]) -> None:
        self.found: set[str] = set()
        self._known = known

    def visit(self, part: Any, names: frozenset[str]) -> None:
        """Check a part of the tree, in which these names of query parts are visible."""
        if isinstance(part, list):
            for each in part:
                self.visit(each, names)
        elif isinstance(part, dict):
            if "class" in part:
                self._check_expression(part)
            elif "type" in part and isinstance(part["type"], str):
                names = self._check_node(part, part["type"], names)
            for key, each in part.items():
                if key != "cte_map":
                    self.visit(each, names)

    def _check_node(self, node: Node, kind: str, names: frozenset[str]) -> frozenset[str]:
        """Refuse a node that uses anything else; returns the names that are visible inside it."""
        if kind in _QUERIES:
            return self._names_in(node, names)
        if kind.endswith("_NODE"):
            raise query_error(ONE_QUERY)
        if kind == "BASE_TABLE":
            self._check_table(node, names)
        elif kind == "SHOW_REF":
            self._check_shown(node)
        elif kind == "TABLE_FUNCTION":
            self._check_table_function(node)
        elif kind not in _SOURCES and not _PARTS.fullmatch(kind):
            raise query_error(f"may not use {kind.lower().replace('_', ' ')}")
        return names

    def _names_in(self, node: Node, names: frozenset[str]) -> frozenset[str]:
        """Look at the parts that a query names; each is seen by those after it, and by the rest."""
        for entry in (node.get("cte_map") or {}).get("map") or ():
            name = str(entry["key"])
            if not _NAME.fullmatch(name) or _OF_DUCKDB.fullmatch(name.lower()):
                raise query_error(f"{name!r} cannot be the name of a part of a query")
            self.visit(entry["value"], names)
            names |= {name.lower()}
        if node["type"] == "RECURSIVE_CTE_NODE":
            # It sees itself in its second half; what it begins with does not.
            self.visit(node["left"], names)
            names |= {str(node["cte_name"]).lower()}
        return names

    def _check_table(self, node: Node, names: frozenset[str]) -> None:
        *path, name = map(str, node["qualified_name"]["path"])
        if [each.lower() for each in path] not in ([], ["main"]):
            raise query_error(f"must call the table {name} by its name alone")
        if node.get("at_clause"):
            raise query_error("may not ask for what a table was before")
        if name.lower() in self._known:
            self.found.add(name.lower())
        elif path or name.lower() not in names:
            raise query_error(f"{name!r} is no table of this store")

    def _check_shown(self, node: Node) -> None:
        path = [str(each) for each in node["qualified_name"].get("path") or ()]
        if path == [] and node.get("query"):
            return  # DESCRIBE and SUMMARIZE of a query, which is looked at as any other
        if len(path) > 1 or (path and path[0] not in _SHOWN):
            raise query_error(f"{path[-1]!r} is no table of this store")

    def _check_table_function(self, node: Node) -> None:
        function = node["function"]
        path = [str(each) for each in (function.get("qualified_name") or {}).get("path") or ()]
        if len(path) != 1 or path[0].lower() not in _TABLE_FUNCTIONS:
            raise query_error(f"may not use the function {'.'.join(path) or 'of this kind'}")

    def _check_expression(self, node: Node) -> None:
        name = node.get("function_name")
        if isinstance(name, str) and _FORBIDDEN.fullmatch(name.lower()):
            raise query_error(f"may not use the function {name}")
