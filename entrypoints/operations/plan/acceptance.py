"""`proposal accept` and `accept-all`: the change set, and what it made of the plan."""

from collections.abc import Mapping
from typing import Any

from herdbook.domain.journal import Op
from herdbook.domain.location.areas import Area
from herdbook.domain.plan.model import ChangeSet
from herdbook.entrypoints.cli.text import plain, short_id
from herdbook.entrypoints.context import AppContext
from herdbook.entrypoints.operations.call_use_case import call
from herdbook.entrypoints.operations.crud.views import describe
from herdbook.entrypoints.operations.model import Operation
from herdbook.entrypoints.operations.serialize import row_to_data
from herdbook.ports.engine.dictionary import PAGES, PHASES, TASKS
from herdbook.ports.engine.kinds import Kind
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork

_VERBS = {Op.ADD: "added", Op.SAVE: "changed", Op.REMOVE: "removed"}


def accept(
    app: AppContext, *, operation: Operation, arguments: Mapping[str, Any]
) -> dict[str, Any]:
    """The change set, and in `rows` the pages, phases and tasks that it added or changed."""
    change_set: ChangeSet = call(app, operation=operation, arguments=arguments)
    return {**row_to_data(change_set), "rows": app.read(Area.WORK, _rows, change_set.tx)}


def _rows(uow: UnitOfWork, tx: str) -> list[dict[str, str]]:
    kinds: dict[str, Kind[Any]] = {kind.name: kind for kind in (PAGES, PHASES, TASKS)}
    found: dict[str, dict[str, str]] = {}
    for entry in uow.journal.of_tx(tx):
        kind = kinds.get(entry.entity)
        row = None if kind is None else uow.get(kind, [entry.key])[0]
        if kind is not None and row is not None:
            name = str(vars(row).get("name") or vars(row).get("title"))
            made = {"op": _VERBS[entry.op], "kind": kind.title, "id": entry.key, "name": name}
            found.setdefault(entry.key, made)
    return list(found.values())


def view(answer: dict[str, Any]) -> str:
    """The change set in one line, and a line for each row it added or changed."""
    rows = [
        f"  {each['op']} {each['kind']} {short_id(each['id'])} {plain(each['name'])!r}"
        for each in answer["rows"]
    ]
    return "\n".join([f"{describe(answer)}: {answer['status']}", *rows])
