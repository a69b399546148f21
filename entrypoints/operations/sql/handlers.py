"""SQL over any store, for the person at the keyboard: `sql`, `shell`."""

import sys
from typing import Any

from herdbook.adapters.sql_query import ask
from herdbook.domain.location.areas import Area
from herdbook.entrypoints.cli import sql_shell as prompt
from herdbook.entrypoints.cli.tabular import number_duplicates, to_json_value
from herdbook.entrypoints.context import AppContext


def sql(here: AppContext, *, query: str, area: str, format: str, limit: int) -> dict[str, Any]:  # noqa: A002 - the option's name
    """Run one read-only query over the store of an area."""
    text = sys.stdin.read() if query == "-" else query
    answer = ask(_url(here, area), text, limit=limit, patience=here.workspace.setting("patience"))
    return {
        "columns": number_duplicates(answer.columns),
        "rows": [[to_json_value(each) for each in row] for row in answer.rows],
        "cut": answer.cut,
        "format": format,
    }


def shell(here: AppContext, *, area: str, write: bool) -> dict[str, Any]:
    """Hand the terminal to the SQL prompt of an area's store until it is left."""
    code = prompt.shell(_url(here, area), write=write, patience=here.workspace.setting("patience"))
    return {"exit_code": code, "ok": code == 0}


def _url(here: AppContext, area: str) -> str:
    place = here.workspace.locate(Area(area))
    for note in place.notes:
        here.warn(note)
    here.workspace.store_exists(place)  # or refused: engines open whatever lies there
    return place.url
