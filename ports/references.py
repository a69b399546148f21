"""References and uniques, kept above the store so that every engine means the same by them."""

from collections.abc import Iterable, Sequence
from typing import Any

from herdbook.domain.errors import AlreadyExists, UnknownReference
from herdbook.ports.changes import Reads
from herdbook.ports.kinds import Dictionary, Kind, OnDelete, Reference, Unique
from herdbook.ports.query import any_of, find

AT_ONCE = 5_000
"""How many keys one question carries at most."""

Removal = dict[Kind[Any], dict[Any, Any]]
"""Rows by kind and key."""


def _parts(values: Iterable[Any]) -> Iterable[list[Any]]:
    everything = list(values)
    return (everything[i : i + AT_ONCE] for i in range(0, len(everything), AT_ONCE))


def check_references(
    read: Reads, dictionary: Dictionary, kind: Kind[Any], rows: Sequence[Any], before: Sequence[Any]
) -> None:
    """Refuse rows whose new references name nothing; rows of one batch may name each other."""
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
        for part in _parts(wanted):
            for key, found in zip(part, read.get(target, part), strict=True):
                if found is None:
                    raise UnknownReference(
                        kind.title, str(kind.key_of(wanted[key])), field, target.title, str(key)
                    )


def check_uniques(
    read: Reads, kind: Kind[Any], rows: Sequence[Any], before: Sequence[Any]
) -> None:
    """Refuse rows that would share values which must be unique."""
    for unique in kind.uniques:
        wanted: dict[tuple[Any, ...], Any] = {}
        for row, old in zip(rows, before, strict=True):
            values = _unique_values(unique, row)
            if values is None or (old is not None and _unique_values(unique, old) == values):
                continue
            if values in wanted:
                raise AlreadyExists(kind.title, str(kind.key_of(wanted[values])), unique.fields)
            wanted[values] = row
        for holder in _holders(read, kind, unique, wanted):
            values = _unique_values(unique, holder)
            key = kind.key_of(holder)
            if values in wanted and key != kind.key_of(wanted[values]):
                raise AlreadyExists(kind.title, str(key), unique.fields)


def _unique_values(unique: Unique, row: Any) -> tuple[Any, ...] | None:
    if unique.when_none is not None and getattr(row, unique.when_none) is not None:
        return None
    return tuple(getattr(row, name) for name in unique.fields)


def _holders(
    read: Reads, kind: Kind[Any], unique: Unique, wanted: Iterable[tuple[Any, ...]]
) -> Iterable[Any]:
    """Rows that may hold the wanted values: one question per distinct leading values."""
    fixed = {unique.when_none: None} if unique.when_none else {}
    *leading, last = unique.fields
    groups: dict[tuple[Any, ...], list[Any]] = {}
    for values in wanted:
        groups.setdefault(values[:-1], []).append(values[-1])
    for lead, tails in groups.items():
        where = {**fixed, **dict(zip(leading, lead, strict=True))}
        for part in _parts(tails):
            yield from read.select(find(kind, {**where, last: any_of(part)}))


def to_remove(
    read: Reads, dictionary: Dictionary, kind: Kind[Any], rows: Sequence[Any]
) -> tuple[Removal, Removal]:
    """What goes when these rows go, and what is emptied, as `(removed, emptied)` rows.

    What refers to a row comes before it, so that a reader of the journal never meets a row whose
    reference is already gone; rows that refer to one another in a circle go all the same. Emptied
    rows are given as they will be.
    """
    removed: Removal = {}
    frontier: list[tuple[Kind[Any], dict[Any, Any]]] = [
        (kind, {kind.key_of(row): row for row in rows})
    ]
    setting_null: list[tuple[Kind[Any], Reference, list[Any]]] = []
    while frontier:
        current, fresh = frontier.pop()
        known = removed.setdefault(current, {})
        fresh = {key: row for key, row in fresh.items() if key not in known}
        known.update(fresh)
        if not fresh:
            continue
        for referrer, reference in dictionary.referrers[current.name]:
            if reference.on_delete is OnDelete.SET_NULL:
                setting_null.append((referrer, reference, list(fresh)))
                continue
            for part in _parts(fresh):
                found = read.select(find(referrer, {reference.field: any_of(part)}))
                if found:
                    frontier.append((referrer, {referrer.key_of(row): row for row in found}))
    emptied: Removal = {}
    for referrer, reference, keys in setting_null:
        gone = removed.get(referrer, {})
        for part in _parts(keys):
            for row in read.select(find(referrer, {reference.field: any_of(part)})):
                key = referrer.key_of(row)
                if key not in gone:
                    rows_of = emptied.setdefault(referrer, {})
                    rows_of[key] = _emptied(rows_of.get(key, row), reference.field)
    return _referrers_first(removed), emptied


def _emptied(row: Any, field: str) -> Any:
    copy = object.__new__(type(row))
    vars(copy).update(vars(row), **{field: None})
    return copy


def _referrers_first(removed: Removal) -> Removal:
    """The same rows, last found first: a cascade finds a row before what refers to it."""
    return {kind: dict(reversed(rows.items())) for kind, rows in reversed(removed.items())}
