"""Tables in a broker's memory answer as `matches` and `sort_and_page` say."""

from typing import Any

import pytest
from attrs import evolve

from herdbook.adapters.duckdb.broker import row_cache
from herdbook.adapters.duckdb.broker.commit_group import CommitGroup, KindChange
from herdbook.adapters.duckdb.broker.row_cache import CachedTable, RowCache
from herdbook.adapters.duckdb.dialect import DUCKDB
from herdbook.adapters.sql.session import Tables
from herdbook.domain.plan.model import Task
from herdbook.ports.engine.dictionary import JOURNAL, TASKS
from herdbook.ports.engine.kinds import Kind
from herdbook.ports.engine.query import find, matches, sort_and_page
from tests.contract.lookups import every_lookup, queries_for, rows_for

TABLES = Tables(DUCKDB, "here")
NAMED = frozenset({"name"})


@every_lookup
def test_every_lookup_answers_as_the_meaning_says(kind: Kind[Any], lookup: tuple[str, ...]) -> None:
    """Answers, counts and pages, of rows that were there, came, went and came again."""
    table, rows = TABLES[kind], rows_for(kind, lookup)
    kept = CachedTable(table, [table.values(row) for row in rows[::2]])
    queries = queries_for(kind, lookup, rows)
    for query in queries:
        kept.select(query)  # from here on its order is kept up to date
    for row in rows[1::2]:
        kept.put(table.values(row))
    for row in rows[::3]:
        kept.remove(kind.key_of(row))
        kept.put(table.values(row))
    kept.remove(kind.key_of(rows[0]))
    rows = rows[1:]
    for query in queries:
        expected = sort_and_page(query, [row for row in rows if matches(query, row)])
        assert [table.row(each) for each in kept.select(query)] == expected, query
        assert kept.count(query) == len(expected), query
        size = 1 + len(expected) // 3
        paged, page_query = [], query._replace(limit=size)
        while page := [table.row(each) for each in kept.select(page_query)]:
            paged += page
            page_query = page_query.next_page(page[-1])
        assert paged == expected, query


def task(number: int, **values: Any) -> list[Any]:
    """The values of a task."""
    return TABLES[TASKS].values(evolve(Task(name=f"task {number}"), id=f"tsk_{number}", **values))


def test_rows_are_kept_after_a_few_reads_and_if_they_are_not_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And those of a journal never are."""
    monkeypatch.setattr(row_cache, "MOST_ROWS", 3)
    cache, rows = RowCache(TABLES), [tuple(task(number)) for number in range(4)]
    due = [cache.is_due("here", TASKS) for _ in range(4)]
    assert due == [False, False, True, True]
    assert cache.load("here", TASKS, lambda *_: rows) is None
    assert not cache.is_due("here", TASKS)
    assert not any(cache.is_due("here", JOURNAL) for _ in range(9))
    kept = cache.load("there", TASKS, lambda *_: rows[:3])
    assert kept is not None
    assert kept.count(find(TASKS)) == 3
    cache.change("there", TASKS, [rows[3]], [])
    assert cache.find("there", TASKS) is None


def test_numbers_above_all_there_are_need_no_look() -> None:
    """The last one is asked for once, and followed."""
    cache, asked = RowCache(TABLES), []

    def fetch(sql: str, given: list[Any]) -> list[tuple[Any, ...]]:
        asked.append((sql, given))
        return [(7,)]

    assert cache.is_behind_all("here", JOURNAL, [8, 9], fetch)
    assert not cache.is_behind_all("here", JOURNAL, [7, 8], fetch)
    width = list(JOURNAL.columns).index(JOURNAL.key)
    cache.change("here", JOURNAL, [[9] * (width + 1)], [])
    assert not cache.is_behind_all("here", JOURNAL, [9], fetch)
    assert cache.is_behind_all("here", JOURNAL, [10], fetch)
    assert len(asked) == 1


def test_a_group_writes_what_becomes_of_each_row() -> None:
    """Made and changed is made; made and deleted is nothing; changed twice is changed once."""
    group = CommitGroup()
    moved = frozenset({"version", "status"})
    group.add("s", [KindChange(TASKS, [task(1), task(2)], [task(3), task(4)], ["tsk_9"], NAMED)])
    again = [task(1, version=2), task(3, version=2)]
    group.add("s", [KindChange(TASKS, [], again, ["tsk_2"], moved)])
    group.add("s", [KindChange(TASKS, [], [], ["tsk_4"], frozenset())])
    table = TABLES[TASKS]
    by_sql = {each.sql: each for each in group.statements(TABLES)}
    update = table.replace_one(("version", "name", "status"))
    assert set(by_sql) == {table.append_one, update, table.delete_many}
    assert by_sql[table.append_one].parameters == ["s", *task(1, version=2)]
    assert by_sql[update].parameters[0] == 2
    assert by_sql[update].parameters[-1] == "tsk_3"
    assert by_sql[update].rows == 1
    assert by_sql[table.delete_many].parameters == ["s", ["tsk_4", "tsk_9"]]


def test_a_group_takes_no_row_that_it_has_made_or_deleted() -> None:
    """Whether such a row is there only DuckDB can tell, after the group is written."""
    group = CommitGroup()
    group.add("s", [KindChange(TASKS, [task(1)], [], ["tsk_2"], NAMED)])
    assert not group.admits("s", [KindChange(TASKS, [task(1)], [], [], NAMED)])
    assert not group.admits("s", [KindChange(TASKS, [task(2)], [], [], NAMED)])
    assert not group.admits("s", [KindChange(TASKS, [], [task(2)], [], NAMED)])
    assert group.admits("s", [KindChange(TASKS, [task(3)], [task(1)], ["tsk_1"], NAMED)])
    assert group.admits("other", [KindChange(TASKS, [task(1)], [], [], NAMED)])
