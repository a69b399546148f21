"""Queries to a store, as values.

A query uses a declared lookup: equality on its leading fields, at most one of them with several
values, then a range on the next field or on the key; rows come in the order of the lookup's
remaining fields, then of the key. It is validated when it is built, so a misspelt field or an
undeclared lookup is an error in the first test and never a silent scan. `matches` and
`sort_and_page` define what a query means; every store must agree with them.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Generic, NamedTuple, TypeVar

from herdbook.domain.errors import InvalidValue
from herdbook.domain.values import TEXT
from herdbook.ports.engine.kinds import ORDERED, Kind

E = TypeVar("E")


class AnyOf(NamedTuple):
    """A condition: the field has one of these values."""

    values: tuple[Any, ...]


class Range(NamedTuple):
    """A condition: the field is between two bounds, either of which may be left open.

    The lower bound belongs to the range unless `above` is set, the upper one does not unless
    `through` is set. A row without a value is in no range.
    """

    low: Any = None
    high: Any = None
    above: bool = False
    through: bool = False


def any_of(values: Iterable[Any]) -> AnyOf:
    """The field has one of these values; duplicates count once."""
    return AnyOf(tuple(dict.fromkeys(values)))


def at_least(low: Any) -> Range:
    """Greater than or equal to this bound."""
    return Range(low=low)


def above(low: Any) -> Range:
    """Greater than this bound."""
    return Range(low=low, above=True)


def up_to(high: Any) -> Range:
    """Less than or equal to this bound."""
    return Range(high=high, through=True)


def between(low: Any, high: Any) -> Range:
    """From the first bound up to, but without, the second; None leaves a side open."""
    return Range(low=low, high=high)


def starting_with(prefix: str) -> Range:
    """Ids that begin with this text."""
    return Range(low=prefix, high=prefix + "\U0010ffff")


class Query(NamedTuple, Generic[E]):
    """A validated query; build one with `find`."""

    kind: Kind[E]
    lookup: tuple[str, ...]
    equals: tuple[tuple[str, Any], ...] = ()
    several: tuple[str, tuple[Any, ...]] | None = None
    within: tuple[str, Range] | None = None
    order: tuple[str, ...] = ()
    descending: bool = False
    limit: int | None = None
    after: tuple[Any, ...] | None = None

    def next_page(self, row: E) -> "Query[E]":
        """The same query, starting after this row."""
        return self._replace(after=tuple(getattr(row, name) for name in self.order))


def find(
    kind: Kind[E],
    where: Mapping[str, Any] | None = None,
    *,
    by: Sequence[str] | None = None,
    descending: bool = False,
    limit: int | None = None,
    after: E | None = None,
) -> Query[E]:
    """Build a query; `by` picks the order where several lookups would do.

    Raises InvalidValue for an unknown field, for conditions that no declared lookup serves, for
    more than one range or choice of values, for an order that cannot be sorted by, and for a limit
    below one.
    """
    conditions = dict(where or {})
    for name in conditions:
        if name not in kind.columns:
            raise InvalidValue(name, f"{kind.name} has no such field")
    ranged = [name for name, value in conditions.items() if isinstance(value, Range)]
    several = [name for name, value in conditions.items() if isinstance(value, AnyOf)]
    if len(ranged) > 1 or len(several) > 1:
        raise InvalidValue(kind.name, "a query has at most one range and one choice of values")
    exact = [name for name in conditions if name not in ranged]
    lookup, order = _choose_lookup(
        kind, tuple(exact), tuple(ranged), None if by is None else tuple(by), descending
    )
    if limit is not None and (type(limit) is not int or limit < 1):
        raise InvalidValue("limit", f"must be a whole number of at least 1, is {limit!r}")
    query = Query(
        kind,
        lookup,
        equals=tuple(
            (name, kind.columns[name].check(conditions[name]))
            for name in exact
            if name not in several
        ),
        several=_several(kind, several[0], conditions[several[0]]) if several else None,
        within=_within(kind, ranged[0], conditions[ranged[0]]) if ranged else None,
        order=order,
        descending=descending,
        limit=limit,
    )
    return query if after is None else query.next_page(after)


@lru_cache(maxsize=1_000)  # a question is asked again and again, with other values
def _choose_lookup(
    kind: Kind[Any],
    exact: tuple[str, ...],
    ranged: tuple[str, ...],
    by: tuple[str, ...] | None,
    descending: bool,  # noqa: FBT001 - a cache knows a call by its arguments
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The lookup that serves conditions on these fields, and the order of its rows."""
    for lookup in ((), *kind.all_lookups):
        leading = lookup[: len(exact)]
        order = (*lookup[len(exact) :], kind.key)
        if (
            set(leading) == set(exact)
            and order[: len(ranged)] == ranged
            and (by is None or order[: len(by)] == by)
        ):
            _check_order(kind, order, descending=descending)
            return lookup, order
    asked = ", ".join((*exact, *ranged)) + (f" ordered by {', '.join(by)}" if by else "")
    raise InvalidValue(kind.name, f"no lookup is declared for {asked}")


def _check_order(kind: Kind[Any], order: tuple[str, ...], *, descending: bool) -> None:
    for name in order:
        column = kind.columns[name]
        if column.type_name not in ORDERED:
            raise InvalidValue(name, f"{kind.name} cannot be ordered by a {column.type_name}")
        if descending and column.optional:
            raise InvalidValue(name, "what may be empty cannot be ordered downwards")


def _several(kind: Kind[Any], name: str, condition: AnyOf) -> tuple[str, tuple[Any, ...]]:
    column = kind.columns[name]
    return name, tuple(dict.fromkeys(column.check(value) for value in condition.values))


def _within(kind: Kind[Any], name: str, condition: Range) -> tuple[str, Range]:
    column = kind.columns[name]
    # The bound of a range over ids is the beginning of an id, or just after one.
    check = TEXT.check if column.type_name == "id" else column.rule.check
    low, high = (
        None if bound is None else check(name, bound) for bound in (condition.low, condition.high)
    )
    return name, condition._replace(low=low, high=high)


def _in_range(value: Any, bounds: Range) -> bool:
    if value is None:
        return False
    if bounds.low is not None and (value <= bounds.low if bounds.above else value < bounds.low):
        return False
    if bounds.high is None:
        return True
    return bool(value <= bounds.high if bounds.through else value < bounds.high)


def matches(query: Query[E], row: E) -> bool:
    """Whether a row matches the conditions of a query, its order and paging aside."""
    if any(getattr(row, name) != value for name, value in query.equals):
        return False
    if query.several and getattr(row, query.several[0]) not in query.several[1]:
        return False
    return query.within is None or _in_range(getattr(row, query.within[0]), query.within[1])


def _order_key(values: Iterable[Any]) -> tuple[tuple[bool, Any], ...]:
    return tuple((value is None, 0 if value is None else value) for value in values)


def sort_and_page(query: Query[E], rows: Iterable[E]) -> list[E]:
    """The matching rows in the order of the query, starting after `after`, up to its limit."""

    def place(row: E) -> tuple[tuple[bool, Any], ...]:
        return _order_key(getattr(row, name) for name in query.order)

    ordered = sorted(rows, key=place, reverse=query.descending)
    if query.after is not None:
        last = _order_key(query.after)
        ordered = [
            row for row in ordered if (place(row) < last if query.descending else place(row) > last)
        ]
    return ordered[: query.limit]
