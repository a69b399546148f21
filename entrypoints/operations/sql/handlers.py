"""SQL over any store: `sql` and `shell`."""

import sys
from typing import Any, TypedDict

from herdbook.adapters.sql_query import ask
from herdbook.domain.location.areas import Area
from herdbook.entrypoints.cli import sql_shell as prompt
from herdbook.entrypoints.cli.tabular import number_duplicates, to_json_value
from herdbook.entrypoints.context import AppContext


class SqlAnswer(TypedDict):
    """The rows of a query under the names of their columns, and whether there are more."""

    columns: list[str]
    rows: list[list[Any]]
    cut: bool
    format: str


def sql(app: AppContext, *, query: str, area: str, format: str, limit: int) -> SqlAnswer:  # noqa: A002 - the option's name
    """Run one read-only query over the store of an area."""
    text = sys.stdin.read() if query == "-" else query
    answer = ask(_url(app, area), text, limit=limit, patience=app.workspace.setting("patience"))
    return {
        "columns": number_duplicates(answer.columns),
        "rows": [[to_json_value(each) for each in row] for row in answer.rows],
        "cut": answer.cut,
        "format": format,
    }


def shell(app: AppContext, *, area: str, write: bool) -> dict[str, Any]:
    """Run the SQL shell of an area's store on the terminal until it exits."""
    code = prompt.shell(_url(app, area), write=write, patience=app.workspace.setting("patience"))
    return {"exit_code": code, "ok": code == 0}


def _url(app: AppContext, area: str) -> str:
    place = app.workspace.locate(Area(area))
    for note in place.notes:
        app.warn(note)
    app.workspace.store_exists(place)  # raises if it must not be opened: engines open any file
    return place.url
