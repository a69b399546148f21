"""The output of `sql` for people, spreadsheets and programs; `shell` adds none."""

from typing import Any

from herdbook.adapters.sql_query import Answer
from herdbook.entrypoints.cli import tabular

FORMATS = {"table": tabular.as_table, "csv": tabular.as_csv, "json": tabular.as_json}


def sql(answer: dict[str, Any]) -> str:
    """The rows, in the requested format."""
    rows = Answer(tuple(answer["columns"]), [tuple(row) for row in answer["rows"]])
    text = FORMATS[answer["format"]](rows).removesuffix("\n")
    if not answer["cut"] or answer["format"] != "table":
        return text
    return f"{text}\n(there are more rows than these {len(rows.rows)}; --limit shows more)"


def shell(_: dict[str, Any]) -> str:
    """Nothing: the shell has printed its own output."""
    return ""
