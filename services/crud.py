"""Create, read, update and delete rows of any kind.

Written once for all kinds, from the dictionary; rules of single kinds are in the modules named
after them.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, TypeVar

from herdbook.domain.entity import evolve
from herdbook.domain.errors import InvalidValue, NotFound
from herdbook.domain.values import LONGEST_ID
from herdbook.ports.engine.codec import choices_by_value
from herdbook.ports.engine.dictionary import TASKS
from herdbook.ports.engine.kinds import Kind
from herdbook.ports.engine.paging import select_all
from herdbook.ports.engine.query import Query, any_of, find, starting_with
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services.guarded_fields import guards_of, refuse_guarded
from herdbook.services.listing import Listing, require_limit
from herdbook.services.plan import plan_order

E = TypeVar("E")

SHORTEST_PREFIX = 4
"""How many characters after the prefix of its kind an abbreviated id has, at least."""
MOST_SCANNED = 100_000
"""How many rows are compared with fields that no lookup has."""
MOST_COUNTED = 10_000
"""How many further rows are compared in order to count those that match."""
MANY = 5
"""How many candidates an error names."""


def find_row(uow: UnitOfWork, kind: Kind[E], text: str) -> E:
    """Find a row by its id, by a unique prefix of the id, or by its name if that is unique.

    The prefix of the kind may be left out of an id. Raises NotFound if there is no such row and
    InvalidValue if it could be several: a name that is also the beginning of another row's id
    names neither.
    """
    exact = _find_by_key(uow, kind, text)
    if exact is not None:
        return exact
    found = {kind.key_of(row): row for row in _find_by_name(uow, kind, text)}
    prefix = f"{kind.prefix}_"
    rest = text.removeprefix(prefix)
    if kind.prefix and SHORTEST_PREFIX <= len(rest) <= LONGEST_ID and not _is_unique(kind, found):
        where = {kind.key: starting_with(prefix + rest)}
        found |= {kind.key_of(row): row for row in uow.select(find(kind, where, limit=MANY + 1))}
    if len(found) > 1:
        ids = ", ".join(str(key) for key in list(found)[:MANY])
        more = " and others" if len(found) > MANY else ""
        raise InvalidValue(kind.title, f"{text!r} could be any of {ids}{more}")
    for row in found.values():
        return row
    raise NotFound(kind.title, text)


def _is_unique(kind: Kind[Any], found: Mapping[Any, Any]) -> bool:
    """Whether a row was found by a name that no other can have."""
    return bool(found) and any(each.lookup == ("name",) for each in kind.uniques)


def _find_by_key(uow: UnitOfWork, kind: Kind[E], text: str) -> E | None:
    try:
        (row,) = uow.get(kind, [text])
    except InvalidValue:
        return None
    return row


def _find_by_name(uow: UnitOfWork, kind: Kind[E], text: str) -> list[E]:
    if ("name",) not in kind.all_lookups:
        return []
    try:
        return uow.select(find(kind, {"name": text}, limit=MANY + 1))
    except InvalidValue:
        return []


def complete_rows(uow: UnitOfWork, kind: Kind[E], text: str, *, limit: int) -> list[E]:
    """Rows that a person may mean who has typed this much of an id or a name.

    Names are not looked up by their beginnings; of more rows than the limit, the first are offered.
    """
    found: list[E] = []
    if kind.prefix and text:
        where = {kind.key: starting_with(f"{kind.prefix}_{text.removeprefix(f'{kind.prefix}_')}")}
        found = uow.select(find(kind, where, limit=limit))
    return [*found, *list_rows(uow, kind, {}, limit=limit)]


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

    A subtask that names neither belongs to the phase and the initiative of its parent. Raises
    InvalidValue for a value of a field that only use cases write.
    """
    known = resolve_references(uow, kind, values)
    if kind.name == TASKS.name:
        known = _inherit_place(uow, known)
    row = kind.entity(**known)
    columns = {name: kind.columns[name] for name in guards_of(kind.name, adding=True)}
    defaults = {name: each.default for name, each in columns.items() if each.has_default}
    refuse_guarded(kind.name, defaults, vars(row))
    (added,) = uow.add(kind, [row])
    return added


def _inherit_place(uow: UnitOfWork, values: dict[str, Any]) -> dict[str, Any]:
    """The values of a task, with the phase and the initiative of its parent if it names neither."""
    parent_id = values.get("parent_task_id")
    if parent_id is None or values.get("phase_id") or values.get("initiative_id"):
        return values
    parent = uow.tasks.get(parent_id)
    return {**values, "phase_id": parent.phase_id, "initiative_id": parent.initiative_id}


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


def list_rows(
    uow: UnitOfWork,
    kind: Kind[E],
    where: Mapping[str, Any],
    *,
    limit: int,
    after: str | None = None,
) -> Listing[E]:
    """A page of the rows that have these values, starting after a row, and their number.

    The lookup that covers most of the fields is used; the other fields are compared row by row, for
    at most MOST_SCANNED rows after the page. Phases and tasks come in the order of the plan. The
    tasks of an initiative are also those of its phases, and their subtasks.
    """
    require_limit(limit)
    wanted = {
        name: kind.columns[name].check(value)
        for name, value in resolve_references(uow, kind, where).items()
    }
    query, rest = _plan_query(kind, wanted)
    last = None if after is None else find_row(uow, kind, after)
    page = min(limit * 2, 1_000)
    initiative = wanted.get("initiative_id") if kind.name == TASKS.name else None
    if initiative is not None:
        rest = {name: value for name, value in wanted.items() if name != "initiative_id"}
        found = plan_order.rows_of_initiative(uow, kind, initiative, page=page, after=last)
    elif not query.lookup and plan_order.has_plan_order(kind):
        found = plan_order.rows_in_order(uow, kind, page=page, after=last)
    else:
        begin = query if last is None else query.next_page(last)
        found = select_all(uow, begin._replace(limit=page))
    if rest or initiative is not None:
        return _list_matches(found, rest, limit, is_first_page=last is None)
    rows = list(islice(found, limit))
    if len(rows) < limit and last is None:
        return Listing(rows, len(rows))
    total = uow.count(query)
    return Listing(rows, total, more=len(rows) == limit and next(found, None) is not None)


def _list_matches(
    found: Iterator[E], wanted: Mapping[str, Any], limit: int, *, is_first_page: bool
) -> Listing[E]:
    """The first rows that have these values; they are counted among the next MOST_COUNTED rows."""

    def matches(most: int) -> Iterator[E]:
        for row in islice(found, most):
            if all(_has_value(vars(row)[name], value) for name, value in wanted.items()):
                yield row

    rows = list(islice(matches(MOST_SCANNED), limit))
    if len(rows) < limit:
        return Listing(rows, len(rows) if is_first_page else None)
    left = sum(1 for _ in matches(MOST_COUNTED))
    if next(found, None) is None and is_first_page:
        return Listing(rows, limit + left)
    return Listing(rows, more=left > 0 or next(matches(MOST_SCANNED), None) is not None)


def _has_value(held: object, wanted: object) -> bool:
    """Whether a field has the wanted value, or a list all the wanted ones."""
    if isinstance(wanted, list):
        return isinstance(held, list) and set(wanted) <= set(held)
    return held == wanted


def _plan_query(kind: Kind[E], wanted: Mapping[str, Any]) -> tuple[Query[E], dict[str, Any]]:
    """The query over the lookup that answers for most of these fields, and the fields left over."""
    best: tuple[str, ...] = ()
    for lookup in kind.all_lookups:
        leading = tuple(_leading_fields(lookup, wanted))
        if len(leading) > len(best):
            best = leading
    fixed = {name: wanted[name] for name in best}
    rest = {n: value for n, value in wanted.items() if n not in fixed}
    if not fixed and not plan_order.has_plan_order(kind):
        fixed = _any_choice(kind)
    return find(kind, fixed), rest


def _any_choice(kind: Kind[Any]) -> dict[str, Any]:
    """The condition under which all rows come by age, where a lookup begins with a choice."""
    for lookup in kind.lookups:
        column = kind.columns[lookup[0]]
        if lookup[1:] == ("created_at",) and column.type_name == "choice" and not column.optional:
            return {column.name: any_of(choices_by_value(column).values())}
    return {}


def _leading_fields(lookup: Sequence[str], wanted: Mapping[str, Any]) -> Iterator[str]:
    for name in lookup:
        if name not in wanted:
            return
        yield name
