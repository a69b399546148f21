"""Create, read, update and delete rows of any kind.

Written once for all kinds, from the dictionary; rules of single kinds are in the modules named
after them.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from herdbook.domain.entity import evolve
from herdbook.domain.errors import InvalidValue, NotFound
from herdbook.ports.engine.kinds import Kind
from herdbook.ports.engine.paging import select_all
from herdbook.ports.engine.query import Query, find, starting_with
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services.guarded_fields import guards_of, refuse_guarded

E = TypeVar("E")

SHORTEST_PREFIX = 4
"""How many characters after the prefix of its kind an abbreviated id has, at least."""
MANY = 5
"""How many candidates an error names."""


def find_row(uow: UnitOfWork, kind: Kind[E], text: str) -> E:
    """Find a row by its id, by a unique prefix of the id, or by its unique name.

    The prefix of the kind may be left out of an id. Raises NotFound if there is no such row and
    InvalidValue if it could be several.
    """
    exact = _find_exact(uow, kind, text)
    if exact is not None:
        return exact
    prefix = f"{kind.prefix}_"
    rest = text.removeprefix(prefix)
    if not kind.prefix or len(rest) < SHORTEST_PREFIX:
        raise NotFound(kind.title, text)
    where = {kind.key: starting_with(prefix + rest)}
    found = uow.select(find(kind, where, limit=MANY + 1))
    if len(found) > 1:
        ids = ", ".join(str(kind.key_of(row)) for row in found[:MANY])
        more = " and others" if len(found) > MANY else ""
        raise InvalidValue(kind.title, f"{text!r} could be any of {ids}{more}")
    if not found:
        raise NotFound(kind.title, text)
    return found[0]


def _find_exact(uow: UnitOfWork, kind: Kind[E], text: str) -> E | None:
    try:
        (row,) = uow.get(kind, [text])
        if row is None and any(each.lookup == ("name",) for each in kind.uniques):
            row = next(iter(uow.select(find(kind, {"name": text}))), None)
    except InvalidValue:
        return None
    return row


def key_of(uow: UnitOfWork, kind: Kind[Any], text: str) -> str:
    """The id of the row that `find_row` finds."""
    return str(kind.key_of(find_row(uow, kind, text)))


def resolve_references(
    uow: UnitOfWork, kind: Kind[Any], values: Mapping[str, Any]
) -> dict[str, Any]:
    """The values with whole ids in all fields that refer to rows."""
    targets = {each.field: uow.dictionary.kinds[each.target] for each in kind.references}
    return {
        name: key_of(uow, targets[name], value) if value and name in targets else value
        for name, value in values.items()
    }


def add(uow: UnitOfWork, kind: Kind[E], values: Mapping[str, Any]) -> E:
    """Add a row with these values; missing fields have their defaults.

    Raises InvalidValue for a value of a field that only use cases write.
    """
    row = kind.entity(**resolve_references(uow, kind, values))
    columns = {name: kind.columns[name] for name in guards_of(kind.name, adding=True)}
    defaults = {name: each.default for name, each in columns.items() if each.has_default}
    refuse_guarded(kind.name, defaults, vars(row))
    (added,) = uow.add(kind, [row])
    return added


def change(uow: UnitOfWork, kind: Kind[E], text: str, values: Mapping[str, Any]) -> E:
    """Change some fields of a row; nothing is written if they have these values already.

    Raises InvalidValue, with the command to use, for a field that only use cases write.
    """
    row = find_row(uow, kind, text)
    changed = evolve(row, **resolve_references(uow, kind, values))
    if changed == row:
        return row
    refuse_guarded(kind.name, vars(row), vars(changed))
    (saved,) = uow.save(kind, [changed])
    return saved


def remove(uow: UnitOfWork, kind: Kind[E], texts: Sequence[str]) -> list[E]:
    """Remove rows and all that cascades from them, all or none; returns the removed rows."""
    rows = {kind.key_of(row): row for row in (find_row(uow, kind, text) for text in texts)}
    uow.remove(kind, list(rows))
    return list(rows.values())


def list_rows(
    uow: UnitOfWork,
    kind: Kind[E],
    where: Mapping[str, Any],
    *,
    limit: int,
    after: str | None = None,
) -> list[E]:
    """A page of the rows that have these values, starting after a row.

    The lookup that covers most of the fields is used; the other fields are compared row by row.
    """
    if limit < 1:
        raise InvalidValue("limit", f"must be at least 1, is {limit}")
    wanted = {
        name: kind.columns[name].check(value)
        for name, value in resolve_references(uow, kind, where).items()
    }
    query, rest = _plan_query(kind, wanted)
    if after is not None:
        query = query.next_page(find_row(uow, kind, after))
    rows: list[E] = []
    for row in select_all(uow, query._replace(limit=min(limit * 2, 1_000))):
        if all(vars(row)[name] == value for name, value in rest.items()):
            rows.append(row)
            if len(rows) == limit:
                break
    return rows


def _plan_query(kind: Kind[E], wanted: Mapping[str, Any]) -> tuple[Query[E], dict[str, Any]]:
    """The query over the lookup that answers for most of these fields, and the fields left over."""
    best: tuple[str, ...] = ()
    for lookup in kind.all_lookups:
        leading = tuple(_leading_fields(lookup, wanted))
        if len(leading) > len(best):
            best = leading
    fixed = {name: wanted[name] for name in best}
    return find(kind, fixed), {n: value for n, value in wanted.items() if n not in fixed}


def _leading_fields(lookup: Sequence[str], wanted: Mapping[str, Any]) -> Iterator[str]:
    for name in lookup:
        if name not in wanted:
            return
        yield name
