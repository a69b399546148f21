"""Handlers for rows of any kind: `add`, `list`, `show`, `set`, `rm`."""

from collections.abc import Mapping, Sequence
from typing import Any

from herdbook.domain.errors import InvalidValue
from herdbook.domain.journal import Position
from herdbook.domain.location.areas import Area
from herdbook.entrypoints.context import AppContext
from herdbook.entrypoints.operations.call_use_case import agent_id
from herdbook.entrypoints.operations.parameters import ELSEWHERE
from herdbook.ports.engine.dictionary import (
    ACCOUNTS,
    AGENTS,
    DICTIONARY,
    PROPOSALS,
    REVIEW_COMMENTS,
)
from herdbook.ports.engine.kinds import Kind
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services import crud
from herdbook.services.agents import accounts

_SETUP = {"provider", "model", "mode"}
"""What the record has to know of an agent, too."""


def add(app: AppContext, *, entity: str, values: Mapping[str, Any]) -> Any:
    """Add a row; a field that tells who acts is filled in."""
    kind = DICTIONARY.kinds[entity]
    known = _resolve_elsewhere(app, kind, values)
    return app.run(kind.area, lambda uow: crud.add(uow, kind, _name_acting(app, uow, kind, known)))


def _name_acting(
    app: AppContext, uow: UnitOfWork, kind: Kind[Any], values: dict[str, Any]
) -> dict[str, Any]:
    if kind is PROPOSALS:
        values["agent_id"] = agent_id(app, uow, values.get("agent_id"))
    elif kind is REVIEW_COMMENTS and "author" not in values and uow.actor.agent is not None:
        values["author"] = uow.actor.agent
    return values


def list_(
    app: AppContext,
    *,
    limit: int,
    after: str | None,
    at: Position | None = None,
    entity: str,
    values: Mapping[str, Any],
) -> list[Any]:
    """List rows, a page at a time."""
    kind = DICTIONARY.kinds[entity]
    where = _resolve_elsewhere(app, kind, values)
    return app.read(kind.area, crud.list_rows, kind, where, limit=limit, after=after, at=at)


def show(
    app: AppContext,
    *,
    id: str,  # noqa: A002 - the parameter's name
    at: Position | None = None,
    entity: str,
) -> Any:
    """Show one row."""
    kind = DICTIONARY.kinds[entity]
    return app.read(kind.area, crud.find_row, kind, id, at=at)


def set_(
    app: AppContext,
    *,
    id: str,  # noqa: A002 - the parameter's name
    clear: str | None,
    entity: str,
    values: Mapping[str, Any],
) -> Any:
    """Change fields of a row; `clear` names those to empty. InvalidValue if there are none."""
    kind = DICTIONARY.kinds[entity]
    emptied = dict.fromkeys(_fields(kind, clear))
    if not values and not emptied:
        raise InvalidValue("set", "says nothing to change; name a field, as in --name")
    changed = {**_resolve_elsewhere(app, kind, values), **emptied}
    row = app.run(kind.area, crud.change, kind, id, changed)
    if kind is AGENTS and _SETUP & values.keys():
        from herdbook.entrypoints.hooks.registration import spool_registration  # noqa: PLC0415

        spool_registration(app, row, **{name: values.get(name) for name in _SETUP})
    return row


def rm(app: AppContext, *, ids: Sequence[str], yes: bool, entity: str) -> list[Any]:
    """Remove rows and what goes with them, which a warning counts; returns the removed rows.

    Raises ConfirmationNeeded, with what would go, if `yes` is needed and not given.
    """
    from herdbook.services.removal import remove  # noqa: PLC0415 - readers need none

    kind = DICTIONARY.kinds[entity]
    removed, removal = app.run(kind.area, remove, kind, ids, yes=yes)
    if words := removal.describe():
        app.warn(f"with it went {words}")
    if entity == ACCOUNTS.name:
        known = {kind.key_of(row) for row in removed}
        if app.read(Area.WORK, accounts.agents_on, known):
            app.run(Area.WORK, accounts.clear_from_agents, known)
    return removed


def _resolve_elsewhere(
    app: AppContext, kind: Kind[Any], values: Mapping[str, Any]
) -> dict[str, Any]:
    """The values with whole ids of rows in other areas; NotFound for one that is not there."""
    found = dict(values)
    for (name, field), target_name in ELSEWHERE.items():
        if name == kind.name and found.get(field) is not None:
            target = DICTIONARY.kinds[target_name]
            found[field] = app.read(target.area, crud.key_of, target, found[field])
    return found


def _fields(kind: Any, clear: str | None) -> list[str]:
    names = [name.strip().replace("-", "_") for name in (clear or "").split(",") if name.strip()]
    found = []
    for name in names:
        field = next((each for each in (name, f"{name}_id") if each in kind.columns), None)
        if field is None:
            raise InvalidValue("clear", f"{kind.name} have no field {name!r}")
        found.append(field)
    return found
