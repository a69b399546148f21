"""Enforces references and uniques above the store, so that they mean the same on every engine."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from herdbook.domain.errors import AlreadyExists, InvalidValue, UnknownReference
from herdbook.ports.engine.codec import construct_unchecked
from herdbook.ports.engine.kinds import Dictionary, Kind, OnDelete, Reference, Unique
from herdbook.ports.engine.paging import chunks
from herdbook.ports.engine.query import any_of, find
from herdbook.ports.unit_of_work.changes import RowKey, RowReader

AT_ONCE = 5_000
"""The most keys in one query."""

Rows = dict[Kind[Any], dict[Any, Any]]
"""Rows by kind and key."""


class RemovalPlan(NamedTuple):
    """What a removal removes and empties, and for each of these rows the named row it follows from.

    Emptied rows are given as they will be.
    """

    removed: Rows
    emptied: Rows
    roots: dict[RowKey, RowKey]


def check_references(
    reader: RowReader,
    dictionary: Dictionary,
    kind: Kind[Any],
    rows: Sequence[Any],
    before: Sequence[Any],
) -> None:
    """Raise UnknownReference if a new reference names no row; rows of a batch may name others."""
    own = {kind.key_of(row) for row in rows}
    for reference in kind.references:
        field = reference.field
        wanted: dict[Any, Any] = {}
        for row, old in zip(rows, before, strict=True):
            value = getattr(row, field)
            if value is not None and (old is None or getattr(old, field) != value):
                wanted.setdefault(value, row)
        if reference.target == kind.name:
            wanted = {key: row for key, row in wanted.items() if key not in own}
        target = dictionary.kinds[reference.target]
        for part in chunks(wanted, AT_ONCE):
            for key, found in zip(part, reader.get(target, part), strict=True):
                if found is None:
                    raise UnknownReference(
                        kind.title, str(kind.key_of(wanted[key])), field, target.title, str(key)
                    )


def check_uniques(
    reader: RowReader, kind: Kind[Any], rows: Sequence[Any], before: Sequence[Any]
) -> None:
    """Raise AlreadyExists if rows would share values that must be unique."""
    for _, holder, unique in find_clashes(reader, kind, rows, before):
        raise AlreadyExists(kind.title, str(kind.key_of(holder)), unique.fields)


def find_clashes(
    reader: RowReader, kind: Kind[Any], rows: Sequence[Any], before: Sequence[Any]
) -> Iterator[tuple[Any, Any, Unique]]:
    """Rows whose values must be unique and are not, each with the row that has them already."""
    for unique in kind.uniques:
        wanted: dict[tuple[Any, ...], Any] = {}
        for row, old in zip(rows, before, strict=True):
            values = unique_values(unique, row)
            if values is None or (old is not None and unique_values(unique, old) == values):
                continue
            if values in wanted:
                yield row, wanted[values], unique
                continue
            wanted[values] = row
        for holder in _holders(reader, kind, unique, wanted):
            values = unique_values(unique, holder)
            if values not in wanted:
                continue
            if kind.identity or kind.key_of(holder) != kind.key_of(wanted[values]):
                yield wanted[values], holder, unique


def unique_values(unique: Unique, row: Any) -> tuple[Any, ...] | None:
    """The values of a row that no other may have; None where the rule does not apply to it."""
    if unique.when_none is not None and getattr(row, unique.when_none) is not None:
        return None
    return tuple(getattr(row, name) for name in unique.fields)


def _holders(
    reader: RowReader, kind: Kind[Any], unique: Unique, wanted: Iterable[tuple[Any, ...]]
) -> Iterable[Any]:
    """Rows that may hold the wanted values: one query per distinct leading values."""
    fixed = {unique.when_none: None} if unique.when_none else {}
    *leading, last = unique.fields
    groups: dict[tuple[Any, ...], list[Any]] = {}
    for values in wanted:
        groups.setdefault(values[:-1], []).append(values[-1])
    for lead, tails in groups.items():
        where = {**fixed, **dict(zip(leading, lead, strict=True))}
        for part in chunks(tails, AT_ONCE):
            yield from reader.select(find(kind, {**where, last: any_of(part)}))


def refuse_other_identity(kind: Kind[Any], rows: Sequence[Any], before: Sequence[Any]) -> None:
    """Raise InvalidValue if a field that a row's id is derived from would change."""
    for name in kind.identity:
        for row, old in zip(rows, before, strict=True):
            if getattr(row, name) != getattr(old, name):
                reason = f"identifies the {kind.title}; remove it and add another one"
                raise InvalidValue(name, reason)


def plan_removal(
    reader: RowReader, dictionary: Dictionary, kind: Kind[Any], rows: Sequence[Any]
) -> RemovalPlan:
    """Find all that a removal of these rows removes and empties.

    Referring rows come before the rows they refer to, so that a reader of the journal never sees a
    row whose reference is already gone.
    """
    removed: Rows = {}
    roots: dict[RowKey, RowKey] = {}
    frontier = [(kind, {kind.key_of(row): row for row in rows})]
    while frontier:
        current, found = frontier.pop()
        known = removed.setdefault(current, {})
        fresh = {key: row for key, row in found.items() if key not in known}
        known.update(fresh)
        for referrer, reference in dictionary.referrers[current.name]:
            if reference.on_delete is OnDelete.CASCADE:
                along = _referring_rows(reader, referrer, reference, fresh)
                if along:
                    _pass_roots_on(roots, (current, referrer, reference), along)
                    frontier.append((referrer, {referrer.key_of(row): row for row in along}))
    ordered = {
        each: _children_first(each, removed[each])
        for each in dictionary.referrers_first
        if each in removed
    }
    return RemovalPlan(ordered, _rows_to_empty(reader, dictionary, removed, roots), roots)


def _pass_roots_on(
    roots: dict[RowKey, RowKey],
    way: tuple[Kind[Any], Kind[Any], Reference],
    rows: Iterable[Any],
) -> None:
    """Give each referring row the root of the row that it refers to, unless it has one."""
    current, referrer, reference = way
    for row in rows:
        parent = (current.name, getattr(row, reference.field))
        roots.setdefault((referrer.name, referrer.key_of(row)), roots.get(parent, parent))


def _referring_rows(
    reader: RowReader, kind: Kind[Any], reference: Reference, keys: Iterable[Any]
) -> list[Any]:
    return [
        row
        for part in chunks(keys, AT_ONCE)
        for row in reader.select(find(kind, {reference.field: any_of(part)}))
    ]


def _rows_to_empty(
    reader: RowReader, dictionary: Dictionary, removed: Rows, roots: dict[RowKey, RowKey]
) -> Rows:
    """The rows that stay but refer to a removed one, with that field set to None."""
    emptied: Rows = {}
    for kind, gone in removed.items():
        for referrer, reference in dictionary.referrers[kind.name]:
            if reference.on_delete is not OnDelete.SET_NULL:
                continue
            for row in _referring_rows(reader, referrer, reference, gone):
                key = referrer.key_of(row)
                if key not in removed.get(referrer, {}):
                    _pass_roots_on(roots, (kind, referrer, reference), [row])
                    rows = emptied.setdefault(referrer, {})
                    values = vars(rows.get(key, row))
                    rows[key] = construct_unchecked(referrer, {**values, reference.field: None})
    return emptied


def _children_first(kind: Kind[Any], rows: dict[Any, Any]) -> dict[Any, Any]:
    """Rows of a kind that forms trees, leaves before their parents."""
    up = [each.field for each in kind.references if each.target == kind.name]
    if not up:
        return rows
    depths: dict[Any, int] = {}
    for key, row in rows.items():
        trail = {key: None}
        parent = getattr(row, up[0])
        # A store of an older version may hold a page or a message that is its own ancestor.
        while parent in rows and parent not in depths and parent not in trail:
            trail[parent] = None
            parent = getattr(rows[parent], up[0])
        depth = depths.get(parent, -1)
        for each in reversed(trail):
            depth += 1
            depths[each] = depth
    return dict(sorted(rows.items(), key=lambda item: -depths[item[0]]))
