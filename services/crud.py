"""What can be done with rows of any kind: find one by what is typed, add, change, list, remove.

Written once for all kinds, from the dictionary; rules that only some kinds have are in the modules
named after them.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from herdbook.domain.entity import evolve
from herdbook.domain.errors import InvalidValue, NotFound
from herdbook.ports.engine.kinds import Kind
from herdbook.ports.engine.paging import every
from herdbook.ports.engine.query import Query, find, starting_with
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork

E = TypeVar("E")

SHORTEST_PREFIX = 4
"""How many characters behind its kind an id must be given by, at least."""
MANY = 5
"""How many of the rows that somebody could have meant are named."""


def named(uow: UnitOfWork, kind: Kind[E], text: str) -> E:
    """The row somebody means: by its id, by a unique beginning of it, or by its unique name.

    The letters for its kind may be left out of an id. NotFound where there is none; InvalidValue
    where it could be several.
    """
    exact = _exact(uow, kind, text)
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


def _exact(uow: UnitOfWork, kind: Kind[E], text: str) -> E | None:
    try:
        (row,) = uow.get(kind, [text])
        if row is None and any(each.lookup == ("name",) for each in kind.uniques):
            row = next(iter(uow.select(find(kind, {"name": text}))), None)
    except InvalidValue:
        return None
    return row


def key_of(uow: UnitOfWork, kind: Kind[Any], text: str) -> str:
    """The id of the row somebody means."""
    return str(kind.key_of(named(uow, kind, text)))


def resolved(uow: UnitOfWork, kind: Kind[Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Values in which fields that refer to rows hold their whole ids."""
    targets = {each.field: uow.dictionary.kinds[each.target] for each in kind.references}
    return {
        name: key_of(uow, targets[name], value) if value and name in targets else value
        for name, value in values.items()
    }


def add(uow: UnitOfWork, kind: Kind[E], values: Mapping[str, Any]) -> E:
    """Add a row with these values; what is left out has its default."""
    (row,) = uow.add(kind, [kind.entity(**resolved(uow, kind, values))])
    return row


def change(uow: UnitOfWork, kind: Kind[E], text: str, values: Mapping[str, Any]) -> E:
    """Change some fields of a row; nothing is written where they are so already."""
    row = named(uow, kind, text)
    changed = evolve(row, **resolved(uow, kind, values))
    if changed == row:
        return row
    (saved,) = uow.save(kind, [changed])
    return saved


def remove(uow: UnitOfWork, kind: Kind[E], texts: Sequence[str]) -> list[E]:
    """Remove rows and all that goes with them, all or none; what they were."""
    rows = {kind.key_of(row): row for row in (named(uow, kind, text) for text in texts)}
    uow.remove(kind, list(rows))
    return list(rows.values())


def listed(
    uow: UnitOfWork,
    kind: Kind[E],
    where: Mapping[str, Any],
    *,
    limit: int,
    after: str | None = None,
) -> list[E]:
    """A page of the rows that have these values, from behind a row on.

    The best lookup answers for as many fields as it can; the others are compared row by row.
    """
    if limit < 1:
        raise InvalidValue("limit", f"must be at least 1, is {limit}")
    wanted = {
        name: kind.columns[name].checked(value)
        for name, value in resolved(uow, kind, where).items()
    }
    query, rest = _question(kind, wanted)
    if after is not None:
        query = query.following(named(uow, kind, after))
    rows: list[E] = []
    for row in every(uow, query._replace(limit=min(limit * 2, 1_000))):
        if all(vars(row)[name] == value for name, value in rest.items()):
            rows.append(row)
            if len(rows) == limit:
                break
    return rows


def _question(kind: Kind[E], wanted: Mapping[str, Any]) -> tuple[Query[E], dict[str, Any]]:
    """The query over the lookup that answers for most of these fields, and the fields left over."""
    best: tuple[str, ...] = ()
    for lookup in kind.all_lookups:
        leading = tuple(_leading(lookup, wanted))
        if len(leading) > len(best):
            best = leading
    fixed = {name: wanted[name] for name in best}
    return find(kind, fixed), {n: value for n, value in wanted.items() if n not in fixed}


def _leading(lookup: Sequence[str], wanted: Mapping[str, Any]) -> Iterator[str]:
    for name in lookup:
        if name not in wanted:
            return
        yield name
