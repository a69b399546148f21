"""One query in SQL over any store: the same rows give the same answer, and nothing is changed."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import duckdb
import pytest
from attrs import frozen

from herdbook.adapters import open_store
from herdbook.adapters.sql_query import Answer, ask
from herdbook.adapters.sql_query.duckdb_syntax import find_tables, parse_query
from herdbook.adapters.stores.urls import path_of
from herdbook.domain.agents.model import Agent
from herdbook.domain.entity import evolve
from herdbook.domain.errors import InvalidValue, StoreUnavailable
from herdbook.domain.plan.model import Priority, Task, TaskStatus
from herdbook.domain.secret import Secret
from herdbook.ports.engine.codec import enum_value
from herdbook.ports.engine.dictionary import AGENTS, DICTIONARY, TASKS
from herdbook.ports.engine.kinds import Kind
from herdbook.ports.engine.query import find
from herdbook.ports.engine.store import Store
from tests.cases import for_each
from tests.contract.rows import ENTITIES, make
from tests.contract.space import everything_in, work_in

NOON = datetime(2026, 1, 2, 12, 0, 0, 123456, tzinfo=UTC)

on_lent_rows = pytest.mark.parametrize("engine", ["memory", "lmdb"], indirect=True)
on_duckdb_sql = pytest.mark.parametrize("engine", ["memory", "lmdb", "duckdb"], indirect=True)
on_postgres = pytest.mark.parametrize("engine", ["postgres"], indirect=True)


@frozen
class Herd:
    """A store with rows that tests only read, and how to ask it."""

    url: str
    store: Store

    def ask(self, sql: str, **options: Any) -> Answer:
        """Ask the open store."""
        return ask(self.store, sql, **options)

    def ask_place(self, sql: str) -> Answer:
        """Ask by its URL, as a command does; memory has no other place than the store."""
        return ask(self.store if self.url == "memory://" else self.url, sql)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Just the rows of the answer."""
        return self.ask(sql).rows


@pytest.fixture(scope="module")
def herd(engine: str, new_url: Callable[[str], str]) -> Iterator[Herd]:
    """Tasks and agents with known values in `work/herd`; a full row of every kind in `…/full`."""
    url = new_url(engine)
    with ExitStack() as stack:
        store = stack.enter_context(open_store(url))
        _add_known(store)
        for area in ("work", "record"):
            with work_in(store, f"{area}/full") as uow:
                for kind in ENTITIES:
                    if kind.area == area:
                        make(uow, kind, full=True)
                uow.commit()
        if engine != "memory":
            store.close()  # what was written is in its files now, and none is for a moment longer
            store = stack.enter_context(open_store(url))
        yield Herd(url, store)


def _add_known(store: Store) -> None:
    with work_in(store, "work/herd") as uow:
        uow.agents.add(Agent(name="the one whose space this is", worktree_id="w"))
        uow.commit()
    tasks = [
        Task(id="a", name="ärger", order=3, priority=Priority.HIGH, status=TaskStatus.COMPLETED),
        Task(id="b", name='it\'s 100% \\ "odd"', order=1, assignee_id="x"),
        Task(id="c", name="牛 \U0001f404", order=2, assignee_id="x", description="two\nlines"),
        Task(id="d", name="Zebra", order=-7, assignee_id="y", fence=2**62),
    ]
    agents = [
        Agent(id="x", name="busy-beaver", worktree_id="w", result={"n": 5, "list": [1, None]}),
        Agent(id="y", name="calm-cow", worktree_id="w", user_dismissed_at=NOON),
    ]
    with store.transaction("work/herd", write=True) as session:
        times = [NOON + timedelta(hours=n) for n in range(len(tasks))]
        session.insert(
            TASKS,
            [evolve(row, created_at=at, version=1) for row, at in zip(tasks, times, strict=True)],
        )
        session.insert(AGENTS, agents)
        session.commit()


HERE = "space = 'work/herd'"
QUESTIONS: list[tuple[str, list[tuple[Any, ...]]]] = [
    (f"SELECT count(*) FROM tasks WHERE {HERE}", [(4,)]),
    (f"SELECT id FROM tasks WHERE {HERE} ORDER BY name", [("d",), ("b",), ("a",), ("c",)]),
    (f'SELECT id FROM tasks WHERE {HERE} ORDER BY "order" DESC LIMIT 2', [("a",), ("c",)]),
    (f"SELECT name FROM tasks WHERE {HERE} AND id = 'b'", [('it\'s 100% \\ "odd"',)]),
    (f"SELECT id FROM tasks WHERE {HERE} AND name = '牛 \U0001f404'", [("c",)]),
    (f"SELECT id FROM tasks WHERE {HERE} AND description LIKE '%\n%'", [("c",)]),
    (f"SELECT id FROM tasks WHERE {HERE} AND fence > 4611686018427387903", [("d",)]),
    (
        (
            f"SELECT id, created_at FROM tasks WHERE {HERE} AND created_at > "
            "TIMESTAMP '2026-01-02 14:00:00.123456'"
        ),
        [("d", NOON + timedelta(hours=3))],
    ),
    (
        (
            f'SELECT status, count(*), sum("order") FROM tasks WHERE {HERE} GROUP BY status '
            "HAVING count(*) > 0 ORDER BY status"
        ),
        [("completed", 1, 3), ("pending", 3, -4)],
    ),
    (
        (
            "SELECT a.name, count(t.id) FROM agents a LEFT JOIN tasks t ON t.assignee_id = a.id "
            "AND t.space = a.space WHERE a.id IN ('x', 'y') GROUP BY a.name ORDER BY a.name"
        ),
        [("busy-beaver", 2), ("calm-cow", 1)],
    ),
    ("SELECT result FROM agents WHERE id = 'x'", [({"n": 5, "list": [1, None]},)]),
    ("SELECT id FROM agents WHERE result->>'n' = '5'", [("x",)]),
    (
        "SELECT id, user_dismissed_at FROM agents WHERE id IN ('x', 'y') ORDER BY id",
        [("x", None), ("y", NOON)],
    ),
    (
        (
            f"WITH mine AS (SELECT * FROM tasks WHERE {HERE}) SELECT count(*) FROM mine "
            "WHERE assignee_id IS NOT NULL"
        ),
        [(3,)],
    ),
    (
        (
            f"SELECT id FROM tasks t WHERE {HERE} AND NOT EXISTS (SELECT 1 FROM agents a "
            "WHERE a.id = t.assignee_id)"
        ),
        [("a",)],
    ),
    ("VALUES (1, 'x'), (2, NULL)", [(1, "x"), (2, None)]),
    ("SELECT id FROM tasks WHERE id = 'a' UNION ALL SELECT 'none' ORDER BY 1", [("a",), ("none",)]),
    ("/* a; b */ SELECT ';' AS semicolon -- the end;\n;", [(";",)]),
    ("SELECT is_main FROM worktrees WHERE is_main", [(True,)]),
]


@for_each(("sql", "rows"), QUESTIONS, ids=[f"question {n}" for n in range(len(QUESTIONS))])
def test_every_engine_answers_alike(herd: Herd, sql: str, rows: list[tuple[Any, ...]]) -> None:
    """The same query over the same rows gives the same answer on every engine."""
    assert herd.ask_place(sql).rows == rows


@for_each("kind", list(DICTIONARY), ids=lambda kind: kind.name)
def test_a_table_holds_what_the_store_holds(herd: Herd, kind: Kind[Any]) -> None:
    """Every row of every space is there, each field by its name and in its type."""
    answer = herd.ask(f'SELECT * FROM {kind.name} ORDER BY space, "{kind.key}"')
    assert answer.columns == ("space", *kind.columns)
    expected = []
    for space in herd.store.spaces():
        with herd.store.transaction(space, write=False) as session:
            rows = session.select(find(kind))
        expected += [(space, *(_seen(vars(row)[name]) for name in kind.columns)) for row in rows]
    assert answer.rows == expected
    assert not answer.cut


def _seen(value: Any) -> Any:
    """A value of the domain as a query shows it."""
    if hasattr(value, "_value_"):
        return enum_value(value)
    if isinstance(value, Secret) or type(value).__name__ == "Stamp":
        return str(value)
    return value


def test_rows_beyond_the_limit_are_told_and_not_fetched(herd: Herd) -> None:
    """At most so many rows come back, and whether there were more."""
    sql = f"SELECT id FROM tasks WHERE {HERE} ORDER BY id"
    assert herd.ask(sql, limit=3) == Answer(("id",), [("a",), ("b",), ("c",)], cut=True)
    assert herd.ask(sql, limit=4).cut is False


def test_more_rows_than_a_page_are_all_there(fresh: Callable[..., Store], engine: str) -> None:
    """A table larger than what is lent at once is lent whole."""
    store = fresh()
    with work_in(store) as uow:
        uow.tasks.add_all([Task(name=f"task {n}") for n in range(2_500)])
        uow.commit()
    asked = ask(store, "SELECT count(*), count(DISTINCT name) FROM tasks", limit=5)
    assert asked.rows == [(2_500, 2_500)], engine


def test_a_query_that_takes_too_long_is_stopped(herd: Herd) -> None:
    """After `patience` seconds it is stopped and says so."""
    sql = (
        "SELECT count(*) FROM generate_series(1, 100000) a(i), generate_series(1, 100000) b(j), "
        "generate_series(1, 100000) c(k) WHERE i + j + k = 7"
    )
    with pytest.raises(InvalidValue, match=r"sql: was stopped after 0\.5 s; ask for less"):
        herd.ask(sql, patience=0.5)
    assert herd.rows("SELECT 1") == [(1,)]


@pytest.mark.parametrize("engine", ["memory", "lmdb"], indirect=True)
def test_to_lend_the_rows_counts_towards_the_time(fresh: Callable[..., Store]) -> None:
    """Where rows have to be brought to the query first, that is stopped as well."""
    store = fresh()
    with work_in(store) as uow:
        uow.tasks.add_all([Task(name=f"task {n}") for n in range(2_500)])
        uow.commit()
    sql = "SELECT count(*) FROM tasks"
    with pytest.raises(InvalidValue, match=r"sql: was stopped after 0\.001 s; ask for less"):
        ask(store, sql, patience=0.001)
    assert ask(store, sql).rows == [(2_500,)]


NOT_QUERIES = [
    "INSERT INTO tasks (id) VALUES ('z')",
    "UPDATE tasks SET name = 'changed'",
    "DELETE FROM tasks",
    "DROP TABLE tasks",
    "CREATE TABLE more (a int)",
    "CREATE TEMP TABLE more AS SELECT 1",
    "ALTER TABLE tasks ADD COLUMN more int",
    "WITH gone AS (DELETE FROM tasks RETURNING *) SELECT * FROM gone",
    "COPY tasks TO '/tmp/herdbook-must-not-be'",
    "COPY (SELECT 1) TO PROGRAM 'true'",
    "COPY tasks FROM '/etc/passwd'",
    "EXPLAIN SELECT 1",
    "EXPLAIN ANALYZE DELETE FROM tasks",
    "BEGIN",
    "COMMIT",
    "SET search_path = public",
    "SET threads = 4",
    "RESET ALL",
    "PREPARE p AS SELECT 1",
    "EXECUTE p",
    "VACUUM",
    "CHECKPOINT",
    "ATTACH '/tmp/other.duckdb' AS other",
    "DETACH herdbook",
    "INSTALL httpfs",
    "LOAD httpfs",
    "PRAGMA database_list",
    "CALL pg_sleep(0)",
    "DO $$ BEGIN END $$",
    "LISTEN herd",
    "NOTIFY herd",
    "SELECT 1; SELECT 2",
    "SELECT 1; DELETE FROM tasks",
    "SELECT $$;$$; DELETE FROM tasks",
    "SELECT 1 /* ; */; /* ; */ DROP TABLE tasks",
    "SELECT '\\'; DELETE FROM tasks; --'",
    "SELECT 1) AS answer; DELETE FROM tasks; SELECT * FROM (SELECT 1",
    "SELECT 1) AS a, (SELECT 2",
    "SELECT * INTO more FROM tasks",
    "SELECT * FROM tasks FOR UPDATE",
    "SELECT * FROM nowhere",
    "SELECT nothing FROM tasks",
    "SELECT $1",
    "SELEC 1",
    "SELECT 'unfinished",
    "SELECT 1 /* unfinished",
    "",
    " ; ",
    "-- nothing",
    "SELECT '\0'",
    "SELECT '\ud800'",
]


def digest(herd: Herd) -> str:
    """What the store consists of: its files where it has some, and all its rows."""
    found = sha256()
    if herd.url.startswith(("lmdb:", "duckdb:")):
        path = path_of(herd.url)
        for each in sorted((path, *path.rglob("*"))):
            if each.is_file() and each.name != "lock.mdb":
                found.update(each.name.encode() + each.read_bytes())
    for space in herd.store.spaces():
        found.update(repr(everything_in(herd.store, space)).encode())
    return found.hexdigest()


def test_what_is_no_query_is_refused_and_changes_nothing(herd: Herd) -> None:
    """Whatever changes, reaches out or is more or less than one query is InvalidValue."""
    before = digest(herd)
    for sql in NOT_QUERIES:
        with pytest.raises(InvalidValue) as refusal:
            herd.ask(sql)
        assert refusal.value.field == "sql", sql
        assert "\n" not in str(refusal.value), sql
    herd.ask("SELECT * FROM tasks")
    assert digest(herd) == before
    assert not Path("/tmp/herdbook-must-not-be").exists()  # noqa: S108 - named above


@on_duckdb_sql
@for_each(
    "source",
    [
        "read_csv('/etc/passwd')",
        "read_text('/etc/passwd')",
        "read_blob('/etc/passwd')",
        "glob('/*')",
        "'/etc/passwd'",
        '"/etc/hosts"',
        "'https://example.org/x.csv'",
        "duckdb_settings()",
        "duckdb_databases()",
        "query('SELECT 1')",
        "query_table('tasks')",
        "json_execute_serialized_sql('{}')",
        "information_schema.tables",
        "memory.main.tasks",
        "(SHOW '/etc/passwd')",
        "(SHOW ALL TABLES)",
        "(DESCRIBE '/etc/passwd')",
        "(SUMMARIZE '/etc/passwd')",
    ],
)
def test_duckdb_reaches_for_nothing_but_the_tables(herd: Herd, source: str) -> None:
    """Files, the network, settings and other ways to run SQL are refused before anything runs."""
    for sql in (
        f"SELECT * FROM {source}",
        f"FROM {source}",
        f"SELECT (SELECT count(*) FROM {source})",
        f"WITH part AS (SELECT * FROM {source}) SELECT 1",
        f"SELECT 1 WHERE EXISTS (SELECT 1 FROM tasks, LATERAL (SELECT * FROM {source}))",
        f"SELECT list_transform([1], x -> (SELECT count(*) FROM {source}))",
    ):
        with pytest.raises(InvalidValue, match="may not use|no table of this store|by its name"):
            herd.ask(sql)


OUT_OF_SCOPE = [
    (
        "select (with duckdb_databases as (select 1 a) select a from duckdb_databases), path, "
        "database_name from duckdb_databases"
    ),
    "SELECT (WITH part AS (SELECT 1 a) SELECT a FROM part), * FROM part",
    "SELECT * FROM (WITH part AS (SELECT 1) FROM part), part",
    "SELECT * FROM part, (WITH part AS (SELECT 1) FROM part)",
    "SELECT * FROM part WHERE EXISTS (WITH part AS (SELECT 1) FROM part)",
    "(WITH part AS (SELECT 1) FROM part) UNION ALL FROM part",
    "WITH a AS (WITH part AS (SELECT 1) FROM part) FROM part",
    "WITH a AS (FROM part), part AS (SELECT 1) FROM a",
    "WITH part AS (FROM part) FROM part",
    "WITH RECURSIVE part AS (FROM part UNION ALL FROM part) FROM part",
    "WITH RECURSIVE part AS (FROM part) FROM part",
    "WITH part AS (SELECT 1) FROM main.part",
    "WITH part AS (SELECT 1) FROM memory.part",
    "WITH RECURSIVE r(n) USING KEY (n) AS (SELECT 1 UNION FROM recurring.r) FROM r",
    "WITH duckdb_tables AS (SELECT 1) FROM duckdb_tables",
    "WITH DuckDB_Settings AS (SELECT 1) FROM duckdb_settings",
    "WITH pg_class AS (SELECT 1) FROM pg_class",
    "WITH sqlite_master AS (SELECT 1) FROM sqlite_master",
    "WITH information_schema AS (SELECT 1) FROM information_schema.tables",
    """WITH "x.csv" AS (SELECT 1) FROM "x.csv" """,
    """WITH "/etc/passwd" AS (SELECT 1) SELECT 1""",
    "FROM sqlite_master",
    "FROM sqlite_schema",
    "FROM pg_catalog.pg_class",
    "FROM pg_settings",
    "FROM duckdb_views",
    "FROM information_schema.columns",
    "FROM temp.main.tasks",
    "FROM system.information_schema.tables",
    "FROM a.b.c.tasks",
]
ELSEWHERE = [
    "SELECT pg_get_viewdef(1)",
    "SELECT pg_get_viewdef(i) FROM range(3000) r(i)",
    "SELECT pg_catalog.pg_get_viewdef(1)",
    "SELECT PG_Get_ConstraintDef(1)",
    "SELECT (1).pg_get_viewdef()",
    "SELECT obj_description(1, 'x')",
    "SELECT col_description(1, 1)",
    "SELECT get_block_size('memory')",
    "SELECT current_setting('allowed_paths')",
    "SELECT main.current_setting('temp_directory')",
    "SELECT system.main.current_setting('temp_directory')",
    "SELECT list_transform(['x'], lambda x: current_setting(x))",
    "SELECT [current_setting(x) FOR x IN ['threads']]",
    "SELECT max(current_setting('threads')) OVER ()",
    "SELECT 1 ORDER BY current_setting('threads')",
    "SELECT 1 LIMIT (SELECT count(*) FROM duckdb_settings())",
    "SELECT 1 LIMIT length(current_setting('threads'))",
    "SELECT getvariable('x')",
    "SELECT getenv('HOME')",
    "SELECT write_log('x')",
    "SELECT nextval('x')",
    "SELECT count(*) FILTER (WHERE current_setting('threads') = '1') FROM tasks",
    "SELECT * FROM tasks JOIN duckdb_settings() ON true",
    "SELECT * FROM tasks POSITIONAL JOIN duckdb_settings()",
    "SELECT * FROM tasks ASOF JOIN duckdb_views() v ON v.view_oid >= tasks.version",
    "SELECT * FROM tasks SEMI JOIN duckdb_settings() ON true",
    "SELECT * FROM (VALUES ((SELECT count(*) FROM duckdb_settings())))",
    "SELECT * FROM unnest((SELECT list(name) FROM duckdb_settings()))",
    "SELECT * FROM range((SELECT count(*) FROM duckdb_settings()))",
    "SELECT * FROM system.main.duckdb_settings()",
    "SELECT * FROM main.range(3)",
    "SELECT * FROM checkpoint()",
    "SELECT * FROM force_checkpoint()",
    "SELECT * FROM enable_logging()",
    "SELECT * FROM histogram(tasks, name)",
    "SELECT * FROM duckdb_logs_parsed('x')",
    "SELECT * FROM test_all_types()",
    "SELECT * FROM summary(tasks)",
    "SELECT * FROM arrow_scan(1, 2, 3)",
    "SELECT * FROM pandas_scan(1)",
    "FROM read_duckdb('x.duckdb')",
    "FROM parquet_metadata('x.parquet')",
    "FROM sniff_csv('/etc/passwd')",
    "PIVOT tasks ON name USING count(*)",
    "FROM (PIVOT tasks ON name USING count(*))",
    "UNPIVOT tasks ON name",
    "SELECT * FROM tasks AT (VERSION => 1)",
    "SHOW DATABASES",
    "SHOW ALL TABLES",
    "SHOW VARIABLES",
    "SHOW TABLES FROM system",
    "SHOW TABLES FROM information_schema",
    "FROM (SHOW DATABASES)",
    "DESCRIBE duckdb_settings",
    "SUMMARIZE duckdb_views",
    "DESCRIBE (FROM duckdb_settings())",
    "WITH a AS (INSERT INTO tasks (id) VALUES ('z') ON CONFLICT DO NOTHING RETURNING *) FROM a",
    "WITH a AS (UPDATE tasks SET name = 'x' RETURNING *) FROM a",
]


@on_duckdb_sql
def test_the_name_of_a_part_counts_where_it_is_seen(herd: Herd) -> None:
    """Elsewhere the same name would be that of a file or of a view of DuckDB's own."""
    for sql in OUT_OF_SCOPE:
        with pytest.raises(InvalidValue, match="no table of|by its name|be the name of|may not"):
            herd.ask(sql)


@on_duckdb_sql
def test_no_way_round_leads_to_settings_catalogs_or_files(herd: Herd) -> None:
    """Whatever expression, join, function or statement it is in, it is refused before it runs."""
    for sql in ELSEWHERE:
        with pytest.raises(InvalidValue) as refusal:
            herd.ask(sql)
        assert "herd_" not in str(refusal.value), sql


@on_duckdb_sql
@for_each(
    ("sql", "rows"),
    [
        ("WITH a AS (SELECT 1 x), b AS (SELECT x + 1 FROM a) FROM b", [(2,)]),
        ("WITH a AS (SELECT 1 x) SELECT (SELECT x FROM a), x FROM a WHERE x IN (FROM A)", [(1, 1)]),
        ("WITH a AS (SELECT 1 x) FROM (WITH b AS (FROM a) SELECT * FROM b, a)", [(1, 1)]),
        ("WITH a AS (SELECT 1 x) FROM (WITH a AS (SELECT 2 x) FROM a), a", [(2, 1)]),
        ("WITH a AS (SELECT 2 x) SELECT 1 UNION ALL FROM a ORDER BY 1", [(1,), (2,)]),
        ("WITH a AS MATERIALIZED (SELECT 1) FROM a, LATERAL (FROM a)", [(1, 1)]),
        (
            "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 3) FROM r",
            [(1,), (2,), (3,)],
        ),
        ("WITH a AS (SELECT 1 x) SELECT list_transform([x], lambda y: y + x) FROM a", [([2],)]),
        ("WITH a AS (SELECT [3, 4] l) SELECT u FROM a, unnest(l) t(u)", [(3,), (4,)]),
        ("WITH tasks AS (SELECT id FROM tasks WHERE id = 'a') FROM tasks", [("a",)]),
        ("SELECT name.upper() FROM tasks WHERE id = 'a'", [("ÄRGER",)]),
        ("SELECT DISTINCT ON (1) 1, 2 QUALIFY row_number() OVER (ORDER BY 1) = 1", [(1, 2)]),
        ("SELECT CAST('1.50' AS DECIMAL(9, 2)), pg_typeof(1), 'a' COLLATE NOCASE = 'A'", None),
        ("SELECT CASE WHEN i > 1 THEN i END FROM range(3) r(i) WHERE i BETWEEN 2 AND 5", [(2,)]),
        ("FROM (VALUES (1, 'x')) v(a, b) TABLESAMPLE 100% LIMIT 10%", None),
    ],
)
def test_parts_of_a_query_are_seen_where_sql_sees_them(
    herd: Herd, sql: str, rows: list[tuple[Any, ...]] | None
) -> None:
    """What is refused is refused for a reason: the usual shapes of queries go through."""
    found = herd.rows(sql)
    assert rows is None or found == rows


def test_every_macro_that_asks_duckdbs_own_views_is_known() -> None:
    """A macro of DuckDB's hides what it reads from the tree of a query."""
    with duckdb.connect(":memory:") as connection:
        macros = connection.execute(
            "SELECT DISTINCT function_name FROM duckdb_functions() WHERE function_type = 'macro' "
            "AND regexp_matches(macro_definition, '(?i)duckdb_|pg_catalog|from |select|setting')"
        ).fetchall()
        names = {name for (name,) in macros}
        assert "pg_get_viewdef" in names
        for name in names:
            tree = parse_query(connection, f"SELECT {name}(1)")
            with pytest.raises(InvalidValue, match="may not use"):
                find_tables(tree, ())


LONG = [
    "SELECT length(repeat('x', 2000000000))",
    "SELECT length(lpad('x', 2000000000, 'ab'))",
    "SELECT levenshtein(repeat('a', 100000), repeat('b', 100000))",
    "SELECT sleep_ms(600000)",
    "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT count(*) FROM r",
]
LARGE = [
    "SELECT count(*) FROM (SELECT unnest(range(2000000000)))",
    "SELECT length(repeat([1, 2, 3], 1000000000))",
    "SELECT list_sort(range(300000000))[1]",
    "SELECT repeat('x', 1000000) FROM range(100000)",
]
HEAVY = [*((sql, 0.5) for sql in LONG), *((sql, 1.5) for sql in LARGE)]
"""Each with a patience: what is large needs some time before it has more than it may use."""


@on_duckdb_sql
@for_each(("sql", "patience"), HEAVY)
def test_a_query_that_hears_no_interrupt_is_stopped_too(
    herd: Herd, sql: str, patience: float
) -> None:
    """A function that takes minutes or gigabytes ends with its patience or with its memory."""
    begun = time.monotonic()
    ends = f"was stopped after {patience} s|memory|an answer of more than"
    with pytest.raises(InvalidValue, match=ends):
        herd.ask(sql, patience=patience)
    assert time.monotonic() - begun < 20
    assert herd.rows("SELECT 1") == [(1,)]


@on_lent_rows
def test_lending_rows_counts_as_asking(fresh: Callable[..., Store], engine: str) -> None:
    """A table that takes longer to lend than the patience is not waited for."""
    store = fresh()
    with work_in(store) as uow:
        uow.tasks.add_all([Task(name=f"task {n}") for n in range(15_000)])
        uow.commit()
    ask(store, "SELECT 1")  # the process is there now, and starting it does not count
    with pytest.raises(InvalidValue, match=r"was stopped after 0\.1 s"):
        ask(store, "SELECT count(*) FROM tasks", patience=0.1)
    assert ask(store, "SELECT count(*) FROM tasks").rows == [(15_000,)], engine


@on_duckdb_sql
def test_duckdb_tells_its_tables(herd: Herd) -> None:
    """SHOW TABLES and DESCRIBE tell what can be asked, and nothing else."""
    assert herd.rows("SHOW TABLES") == [(name,) for name in sorted(DICTIONARY.kinds)]
    columns = [row[0] for row in herd.rows("DESCRIBE tasks")]
    assert columns == ["space", *TASKS.columns]
    assert herd.ask("SUMMARIZE tasks").rows[0][0] == "space"


@on_duckdb_sql
def test_times_with_a_zone_need_no_other_package(herd: Herd) -> None:
    """A time with a zone comes back in UTC, beside other columns and in the order asked."""
    sql = (
        "SELECT 2 AS n, TIMESTAMPTZ '2026-01-02 13:00:00.123456+01' AS at UNION ALL "
        "SELECT 1, NULL ORDER BY n DESC"
    )
    assert herd.ask(sql) == Answer(("n", "at"), [(2, NOON), (1, None)])
    with pytest.raises(InvalidValue, match="has a time with a zone in a list or a struct"):
        herd.ask("SELECT [now()]")


@on_postgres
@for_each(
    "sql",
    [
        "SELECT pg_read_file('/etc/passwd')",
        "SELECT pg_catalog . pg_read_file('/etc/passwd')",
        "SELECT \"pg_read_file\"('/etc/passwd')",
        "SELECT PG_Read_Binary_File('/etc/passwd')",
        "SELECT pg_read/**/_file('/etc/passwd'), pg_ls_dir('/')",
        "SELECT U&\"pg_re\\0061d_file\"('/etc/passwd')",
        "SELECT pg_terminate_backend(1)",
        "SELECT pg_cancel_backend(1)",
        "SELECT pg_reload_conf()",
        "SELECT lo_import('/etc/passwd')",
        "SELECT lo_export(1, '/tmp/x')",
        "SELECT * FROM dblink('', 'SELECT 1') AS t(a int)",
        "SELECT set_config('transaction_read_only', 'off', false)",
        "SELECT pg_advisory_lock(1)",
        "SELECT pg_notify('herd', 'x')",
        "SELECT * FROM pg_stat_activity",
        "SELECT * FROM pg_authid",
        "SELECT * FROM pg_settings",
        "SELECT * FROM pg_file_settings",
        "TABLE public.elsewhere",
        "SELECT * FROM pg_stat_get_activity(NULL)",
        "SELECT query FROM pg_catalog.pg_stat_get_activity(NULL) WITH ORDINALITY",
        "SELECT * FROM pg_show_all_settings()",
        "SELECT * FROM pg_show_all_file_settings()",
        "SELECT * FROM pg_hba_file_rules()",
        "SELECT * FROM pg_lock_status()",
        "SELECT * FROM pg_prepared_statement()",
        "SELECT * FROM pg_cursor()",
        "SELECT * FROM pg_get_backend_memory_contexts()",
        "SELECT * FROM pg_config()",
        "SELECT * FROM pg_control_system()",
        "SELECT current_setting('data_directory')",
        "SELECT set_config('statement_timeout', '0', true)",
        "SELECT pg_relation_filepath('tasks')",
        "SELECT pg_tablespace_location(0)",
        "SELECT pg_postmaster_start_time()",
        "SELECT public.reach_out()",
        'SELECT * FROM "public"."reach_out"()',
        "SELECT * FROM pg_catalog.pg_shadow",
        "SELECT * FROM pg_user_mapping",
        "SELECT * FROM pg_largeobject",
        "SELECT * FROM pg_subscription",
        "SELECT * FROM pg_db_role_setting",
        "SELECT rolpassword FROM pg_roles",
        "SELECT * FROM pg_proc",
        "SELECT * FROM tasks, LATERAL pg_ls_logdir()",
        "WITH a AS (SELECT pg_read_file('/etc/passwd')) SELECT 1",
        "SELECT * FROM (VALUES (pg_read_file('/etc/passwd'))) v",
        "SELECT count(*) FILTER (WHERE pg_read_file('/etc/passwd') IS NULL) FROM tasks",
        "SELECT 1 ORDER BY pg_read_file('/etc/passwd')",
        "SELECT xmlelement(name x, query_to_xml('SELECT 1', true, true, ''))",
    ],
)
def test_postgres_reaches_for_nothing_but_the_tables(herd: Herd, sql: str) -> None:
    """Files, other sessions, settings and other people's tables are refused, to a superuser too."""
    with pytest.raises(InvalidValue):
        herd.ask(sql)


@on_postgres
@for_each(
    "sql",
    [
        "SELECT pg_sleep(600)",
        "SELECT pg_sleep(600)::text FROM tasks ORDER BY 1",
        "SELECT count(*) FROM generate_series(1, 1000000000000)",
        "SELECT length(string_agg(md5(i::text), '')) FROM generate_series(1, 100000000000) g(i)",
        "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT count(*) FROM r",
        "SELECT 1 WHERE (SELECT count(*) FROM generate_series(1, 1000000000000)) > 0",
    ],
)
def test_a_query_on_a_server_ends_with_its_patience(herd: Herd, sql: str) -> None:
    """Wherever in it the time is spent."""
    begun = time.monotonic()
    with pytest.raises(InvalidValue, match="was stopped after 1 s"):
        herd.ask(sql, patience=1)
    assert time.monotonic() - begun < 20
    assert herd.rows("SELECT 1") == [(1,)]


@on_postgres
def test_postgres_tells_its_tables(herd: Herd) -> None:
    """The layout can be asked the way the engine tells it."""
    schema = herd.url.rpartition("schema=")[2]
    sql = (
        "SELECT table_name FROM information_schema.tables "
        f"WHERE table_schema = '{schema}' ORDER BY table_name COLLATE \"C\""
    )
    assert [name for (name,) in herd.rows(sql)] == sorted([*DICTIONARY.kinds, "store"])
    sql = (
        "SELECT column_name FROM information_schema.columns "
        f"WHERE table_schema = '{schema}' AND table_name = 'tasks' ORDER BY ordinal_position"
    )
    assert [name for (name,) in herd.rows(sql)] == ["space", *TASKS.columns]


@pytest.mark.parametrize("engine", ["lmdb", "duckdb", "postgres"], indirect=True)
def test_a_store_that_is_not_there_is_not_made(engine: str, new_url: Callable[[str], str]) -> None:
    """A place without a store is StoreUnavailable, and still without one afterwards."""
    url = new_url(engine)
    for _ in range(2):
        with pytest.raises(StoreUnavailable):
            ask(url, "SELECT 1")
    if engine != "postgres":
        assert not path_of(url).exists()


@on_lent_rows
def test_without_duckdb_the_sentence_says_what_to_install(
    herd: Herd, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store that knows no SQL needs the package, and names it."""
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(StoreUnavailable, match=r"pip install '\.\[duckdb\]'"):
        herd.ask("SELECT 1")


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"limit": 0}, "limit"),
        ({"limit": 1.5}, "limit"),
        ({"patience": 0}, "patience"),
        ({"patience": float("inf")}, "patience"),
    ],
)
def test_limits_that_make_no_sense_are_refused(
    herd: Herd, options: dict[str, Any], field: str
) -> None:
    """How long and how many are numbers above 0."""
    with pytest.raises(InvalidValue, match=f"{field}: must be a"):
        herd.ask("SELECT 1", **options)
