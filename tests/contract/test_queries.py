"""What a query answers, on every lookup of every kind and on every store."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from attrs import evolve

from herdbook.domain.errors import InvalidValue
from herdbook.ports.engine.dictionary import (
    AGENTS,
    MESSAGES,
    OPENINGS,
    SCORE_EVENTS,
    TASKS,
)
from herdbook.ports.engine.kinds import Kind
from herdbook.ports.engine.query import (
    any_of,
    at_least,
    between,
    find,
    matches,
    sort_and_page,
    starting_with,
)
from tests.cases import for_each
from tests.contract.lookups import every_lookup, queries_for, rows_for
from tests.contract.rows import space_for


@every_lookup
def test_every_lookup_answers_as_the_meaning_says(
    store: Any, space: str, kind: Kind[Any], lookup: tuple[str, ...]
) -> None:
    """Answers, counts and pages agree with `matches` and `sort_and_page` over the same rows."""
    rows = rows_for(kind, lookup)
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
        for query in queries_for(kind, lookup, rows):
            expected = sort_and_page(query, [row for row in rows if matches(query, row)])
            assert session.select(query) == expected, query
            assert session.count(query) == len(expected), query
            size = 1 + len(expected) // 3  # a first page, one that follows another, and the last
            paged, page_query = [], query._replace(limit=size)
            while page := session.select(page_query):
                assert len(page) <= size
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
        (TASKS, {"description": "x"}, {}),
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
