"""What a query answers, on every lookup of every kind and on every store."""

import itertools
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from attrs import evolve

from herdbook.domain.errors import InvalidValue
from herdbook.domain.values import INTEGER
from herdbook.ports.engine.dictionary import (
    AGENTS,
    DICTIONARY,
    MESSAGES,
    OPENINGS,
    SCORE_EVENTS,
    TASKS,
)
from herdbook.ports.engine.kinds import ORDERED, Kind
from herdbook.ports.engine.query import (
    Query,
    Range,
    above,
    any_of,
    at_least,
    between,
    find,
    matches,
    sort_and_page,
    starting_with,
    up_to,
)
from tests.cases import for_each
from tests.contract.rows import space_for, value_for

LOOKUPS = [(kind, lookup) for kind in DICTIONARY for lookup in kind.all_lookups]
every_lookup = for_each(
    ("kind", "lookup"), LOOKUPS, ids=lambda it: getattr(it, "name", None) or "+".join(it)
)


def _rows(kind: Kind[Any], lookup: tuple[str, ...]) -> list[Any]:
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


def _queries(kind: Kind[Any], lookup: tuple[str, ...], rows: list[Any]) -> list[Query[Any]]:
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


@every_lookup
def test_every_lookup_answers_as_the_meaning_says(
    store: Any, space: str, kind: Kind[Any], lookup: tuple[str, ...]
) -> None:
    """Answers, counts and pages agree with `matches` and `sort_and_page` over the same rows."""
    rows = _rows(kind, lookup)
    if any(unique.lookup == lookup for unique in kind.uniques):
        rows = list({tuple(getattr(r, n) for n in lookup): r for r in rows}.values())
    with store.transaction(space_for(kind, space), write=True) as session:
        for unique in kind.uniques:
            if unique.lookup != lookup:
                rows = [
                    evolve(row, **{unique.fields[-1]: f"{unique.fields[-1]}{number}"})
                    for number, row in enumerate(rows)
                ]
        if kind.name == "heads":
            return
        session.insert(kind, rows)
        for query in _queries(kind, lookup, rows):
            expected = sort_and_page(query, [row for row in rows if matches(query, row)])
            assert session.select(query) == expected, query
            assert session.count(query) == len(expected), query
            paged, page_query = [], query._replace(limit=3)
            while page := session.select(page_query):
                assert len(page) <= 3
                paged += page
                page_query = page_query.next_page(page[-1])
            assert paged == expected, query


def test_nothing_is_last_whatever_the_order(begin: Any) -> None:
    """Rows without a value come behind all that have one."""
    with begin() as uow:
        moments = [None, datetime(2026, 1, 2, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)]
        rows = [
            OPENINGS.entity(
                task_id=f"t{n}", rank=0, order=0, created_at=moments[1], lease_until=moment
            )
            for n, moment in enumerate(moments)
        ]
        uow.session.insert(OPENINGS, rows)
        found = uow.select(find(OPENINGS, {"state": "ready"}, by=("lease_until",)))
    assert [row.task_id for row in found] == ["t2", "t1", "t0"]


def test_texts_sort_by_code_point(begin: Any) -> None:
    """No store lets a locale decide: upper case before lower case, accents behind z."""
    keys = ["b", "B", "a", "é", "z", "Ä", "_", "10", "9", "\U0001f404", "\uff41"]
    with begin() as uow:
        uow.add(TASKS, [TASKS.entity(id=key, name="x") for key in keys])
        assert [task.id for task in uow.select(find(TASKS))] == sorted(keys)


def test_ids_are_found_by_their_beginning(begin: Any) -> None:
    """A prefix finds what begins with it and nothing else."""
    with begin() as uow:
        keys = ["tsk_a", "tsk_ab", "tsk_abc", "tsk_b", "tsk_ab\U0001f404"]
        uow.add(TASKS, [TASKS.entity(id=key, name="x") for key in keys])
        found = uow.select(find(TASKS, {"id": starting_with("tsk_ab")}))
    assert [task.id for task in found] == ["tsk_ab", "tsk_abc", "tsk_ab\U0001f404"]


def test_times_keep_their_microseconds(begin: Any, space: str) -> None:
    """Neighbouring microseconds are told apart by a range."""
    start = datetime(2026, 7, 1, 12, tzinfo=UTC)
    with begin(space=f"record/{space[5:]}") as uow:
        events = [
            SCORE_EVENTS.entity(
                agent="a", kind="tool", points=1, at=start + timedelta(microseconds=n)
            )
            for n in range(5)
        ]
        events = uow.add(SCORE_EVENTS, events)
        where = {"agent": "a", "at": between(events[1].at, events[3].at)}
        assert uow.select(find(SCORE_EVENTS, where)) == events[1:3]


@for_each(
    ("kind", "where", "options"),
    [
        (TASKS, {"nmae": "x"}, {}),
        (TASKS, {"name": "x"}, {}),
        (TASKS, {"status": "done"}, {}),
        (TASKS, {"status": any_of(["pending", "nope"])}, {}),
        (MESSAGES, {"status": "pending"}, {}),
        (TASKS, {}, {"limit": 0}),
        (TASKS, {}, {"limit": True}),
        (OPENINGS, {"state": "held"}, {"by": ("lease_until",), "descending": True}),
        (AGENTS, {"name": at_least("a")}, {}),
        (SCORE_EVENTS, {"agent": "a", "at": at_least(datetime(2026, 1, 1))}, {}),  # noqa: DTZ001
        (TASKS, {"id": starting_with("a\0")}, {}),
    ],
)
def test_a_question_that_makes_no_sense_is_refused_when_it_is_built(
    kind: Kind[Any], where: dict[str, Any], options: dict[str, Any]
) -> None:
    """A misspelt field, an undeclared lookup or a bad value never becomes a scan."""
    with pytest.raises(InvalidValue):
        find(kind, where, **options)
