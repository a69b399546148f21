"""One query in SQL over any store: the same rows give the same answer, and nothing is changed."""

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen

from herdbook.adapters import open_store
from herdbook.adapters.asking import Answer, ask
from herdbook.adapters.urls import path_of
from herdbook.domain.agents import Agent
from herdbook.domain.entity import evolve
from herdbook.domain.errors import InvalidValue, StoreUnavailable
from herdbook.domain.plan import Priority, Task, TaskStatus
from herdbook.domain.secret import Secret
from herdbook.ports.dictionary import AGENTS, DICTIONARY, TASKS
from herdbook.ports.kinds import Kind
from herdbook.ports.query import find
from herdbook.ports.store import Store
from herdbook.ports.wire import value_of
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

    @property
    def place(self) -> str | Store:
        """By URL, but for memory, which has no other place."""
        return self.store if self.url == "memory://" else self.url

    def ask(self, sql: str, **options: Any) -> Answer:
        """Ask it."""
        return ask(self.place, sql, **options)

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


@pytest.mark.parametrize(
    ("sql", "rows"), QUESTIONS, ids=[f"question {n}" for n in range(len(QUESTIONS))]
)
def test_every_engine_answers_alike(herd: Herd, sql: str, rows: list[tuple[Any, ...]]) -> None:
    """The same query over the same rows gives the same answer on every engine."""
    assert herd.rows(sql) == rows


@pytest.mark.parametrize("kind", list(DICTIONARY), ids=lambda kind: kind.name)
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
        return value_of(value)
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
@pytest.mark.parametrize(
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
@pytest.mark.parametrize(
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
    ],
)
def test_postgres_reaches_for_nothing_but_the_tables(herd: Herd, sql: str) -> None:
    """Files, other sessions, settings and other people's tables are refused, to a superuser too."""
    with pytest.raises(InvalidValue):
        herd.ask(sql)


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
    with pytest.raises(StoreUnavailable, match=r"pip install 'herdbook\[duckdb\]'"):
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
