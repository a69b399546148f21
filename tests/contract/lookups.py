"""Rows and queries for every lookup of every kind."""

import itertools
from typing import Any

from herdbook.domain.values import INTEGER
from herdbook.ports.engine.dictionary import DICTIONARY
from herdbook.ports.engine.kinds import ORDERED, Kind
from herdbook.ports.engine.query import (
    Query,
    Range,
    above,
    any_of,
    at_least,
    between,
    find,
    up_to,
)
from tests.cases import for_each
from tests.contract.rows import value_for

LOOKUPS = [(kind, lookup) for kind in DICTIONARY for lookup in kind.all_lookups]
every_lookup = for_each(
    ("kind", "lookup"), LOOKUPS, ids=lambda it: getattr(it, "name", None) or "+".join(it)
)


def rows_for(kind: Kind[Any], lookup: tuple[str, ...]) -> list[Any]:
    """Rows with ties, gaps and turns in the looked-up fields, in a scrambled order."""
    choices = []
    for name in lookup:
        column = kind.columns[name]
        values = list(dict.fromkeys(value_for(column, n) for n in (5, 2)))
        if column.rule is INTEGER:
            values = [-3, 7]
        choices.append([*values, *([None] if column.optional else [])])
    rows = []
    for number, values in enumerate(itertools.product(*choices)):
        for twin in range(2):
            given = dict(zip(lookup, values, strict=True))
            order = (number * 7 + twin * 3) % 1_000
            key: Any = order if kind.columns[kind.key].type_name == "integer" else f"k{order:04}"
            if kind.key not in given:
                given[kind.key] = key
            rows.append(_bare(kind, **given))
    return list({kind.key_of(row): row for row in rows}.values())


def _bare(kind: Kind[Any], **given: Any) -> Any:
    needed = {
        name: value_for(column, 1)
        for name, column in kind.columns.items()
        if not (column.has_default or column.optional)
    }
    values = {**needed, **given}
    if "count" in kind.columns:
        values["count"] = 1
    return kind.entity(**values)


def queries_for(kind: Kind[Any], lookup: tuple[str, ...], rows: list[Any]) -> list[Query[Any]]:
    """Every equality prefix of a lookup, with ranges, choices, both directions and all pages."""
    queries = []
    for length in range(len(lookup) + 1):
        rest = (*lookup[length:], kind.key)
        if any(kind.columns[name].type_name not in ORDERED for name in rest):
            continue
        sample = rows[len(rows) // 2]
        exact = {name: getattr(sample, name) for name in lookup[:length]}
        ways = [exact]
        if exact:
            field = lookup[length - 1]
            seen = list(dict.fromkeys(getattr(row, field) for row in rows))
            ways.append({**exact, field: any_of(seen)})
            ways.append({**exact, field: any_of([])})
        ranged = rest[0]
        bounds = sorted(v for row in rows if (v := getattr(row, ranged)) is not None)
        if bounds and type(bounds[0]) is not bool:
            low, high = bounds[0], bounds[-1]
            conditions = (at_least(low), above(low), up_to(high), between(low, high), Range())
            ways += [{**exact, ranged: condition} for condition in conditions]
        for where in ways:
            downwards = [False]
            if not any(kind.columns[name].optional for name in rest):
                downwards.append(True)
            for descending in downwards:
                by = rest[:-1] if not any(isinstance(v, Range) for v in where.values()) else None
                queries.append(find(kind, where, by=by or None, descending=descending))
    return queries
