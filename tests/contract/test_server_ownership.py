"""Whose a schema on a Postgres server is, looked at again when it counts; and odd settings."""

import itertools
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from herdbook.adapters import open_store
from herdbook.adapters.postgres import schema as layout
from herdbook.adapters.sql_query import ask
from herdbook.adapters.stores.probe import probe
from herdbook.domain.errors import StoreUnavailable
from herdbook.domain.plan.model import Task
from herdbook.ports.engine.dictionary import TASKS
from herdbook.ports.unit_of_work.run import read, run
from tests.contract.older import NEW, OLD
from tests.contract.space import HERE, everything_in
from tests.postgres_server import PostgresServer, private_postgres, wheel_programs

_numbers = itertools.count(1)


@pytest.fixture(scope="module", params=["machine", "wheel"])
def server(request: pytest.FixtureRequest) -> Iterator[PostgresServer]:
    """A server in which a stranger may make schemas: this machine's, and the newest there is."""
    programs = wheel_programs() if request.param == "wheel" else None
    with private_postgres(programs) as private:
        with psycopg.connect(private.url, autocommit=True) as admin:
            admin.execute("CREATE ROLE mallory LOGIN")
            admin.execute("CREATE ROLE ann LOGIN")
            admin.execute("GRANT CREATE ON DATABASE postgres TO mallory, ann")
        yield private


@pytest.fixture
def schema() -> str:
    return f"owned_{next(_numbers)}"


def url_of(server: PostgresServer, schema: str, role: str = "postgres") -> str:
    """A schema as a role sees it."""
    return f"{server.url.replace('postgres@', f'{role}@')}&schema={schema}"


def as_role(server: PostgresServer, role: str, *statements: str) -> list[Any]:
    """Run statements as a role; the rows of the last."""
    rows = []
    url = server.url.replace("postgres@", f"{role}@")
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            cursor = connection.execute(statement.encode())
            rows = cursor.fetchall() if cursor.description else []
    return rows


def tables(server: PostgresServer, schema: str) -> list[str]:
    """The names of the tables in a schema."""
    question = f"SELECT tablename FROM pg_tables WHERE schemaname = '{schema}' ORDER BY 1"
    return [name for (name,) in as_role(server, "postgres", question)]


def test_a_schema_that_appears_between_look_and_making_is_refused(
    server: PostgresServer, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is made with the tables or not at all, and looked at again if somebody was faster."""
    make = layout._SchemaBuilder._make_store

    def be_slow(making: Any, seen: Any) -> None:
        if not as_role(server, "postgres", f"SELECT to_regnamespace('{schema}')")[0][0]:
            as_role(server, "mallory", f"CREATE SCHEMA {schema}")
        make(making, seen)

    monkeypatch.setattr(layout._SchemaBuilder, "_make_store", be_slow)
    with pytest.raises(StoreUnavailable, match="belongs to the role 'mallory'"):
        open_store(url_of(server, schema))
    assert tables(server, schema) == []


@pytest.mark.parametrize("moment", ["_lock", "_inspect_again"])
def test_a_table_that_appears_while_others_are_made_is_refused(
    server: PostgresServer, schema: str, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """What was put in the place of a new table is noticed before anything lasts."""
    like = f"like_{schema}"
    open_store(url_of(server, like, "mallory")).close()
    as_role(server, "postgres", f"CREATE SCHEMA {schema}")
    as_role(server, "postgres", f"GRANT ALL ON SCHEMA {schema} TO PUBLIC")
    happens = getattr(layout._SchemaBuilder, moment)
    done: list[int] = []

    def meanwhile(making: Any, *arguments: Any) -> Any:
        found = happens(making, *arguments)
        if not done:
            done.append(1)
            as_role(server, "mallory", f"CREATE TABLE {schema}.tasks (LIKE {like}.tasks)")
        return found

    monkeypatch.setattr(layout._SchemaBuilder, moment, meanwhile)
    with pytest.raises(StoreUnavailable, match="belongs to the role 'mallory'"):
        open_store(url_of(server, schema))
    assert tables(server, schema) == ["tasks"]


def test_an_upgrade_looks_again(
    server: PostgresServer, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table that a newer program will want is not taken from a stranger who put it there."""
    url = url_of(server, schema)
    open_store(url, dictionary=OLD).close()
    as_role(server, "postgres", f"GRANT ALL ON SCHEMA {schema} TO PUBLIC")
    before = tables(server, schema)
    new = next(name for name in NEW.kinds if name not in OLD.kinds)
    lock = layout._SchemaBuilder._lock

    def meanwhile(making: Any) -> Any:
        as_role(server, "mallory", f"CREATE TABLE {schema}.{new} (space text, id text)")
        return lock(making)

    monkeypatch.setattr(layout._SchemaBuilder, "_lock", meanwhile)
    with pytest.raises(StoreUnavailable, match="belongs to the role 'mallory'"):
        open_store(url, dictionary=NEW)
    assert tables(server, schema) == sorted([*before, new])
    ((version,),) = as_role(server, "postgres", f"SELECT schema_version FROM {schema}.store")
    assert version == OLD.version


def test_whoever_may_only_grant_a_role_is_no_member(server: PostgresServer, schema: str) -> None:
    """A role that made another one (since 16 it may then grant it) does not trust it for that."""
    keeper, made = f"keeper_{schema}", f"made_{schema}"
    as_role(
        server,
        "postgres",
        f"CREATE ROLE {keeper} LOGIN CREATEROLE",
        f"GRANT CREATE ON DATABASE postgres TO {keeper}",
    )
    as_role(server, keeper, f"CREATE ROLE {made} LOGIN")
    as_role(server, "postgres", f"GRANT CREATE ON DATABASE postgres TO {made}")
    as_role(server, made, f"CREATE SCHEMA {schema}", f"GRANT ALL ON SCHEMA {schema} TO PUBLIC")
    with pytest.raises(StoreUnavailable, match=f"belongs to the role '{made}'"):
        open_store(url_of(server, schema, keeper))
    assert tables(server, schema) == []


def test_what_a_trusted_role_made_for_us_is_used(server: PostgresServer, schema: str) -> None:
    """A superuser's empty schema in which we may make tables is as good as our own."""
    as_role(server, "postgres", f"CREATE SCHEMA {schema}", f"GRANT ALL ON SCHEMA {schema} TO ann")
    url = url_of(server, schema, "ann")
    with open_store(url) as store:
        run(store, HERE, lambda uow: uow.tasks.add(Task(name="kept")))
        assert probe(url).exists
        assert ask(url, "SELECT name FROM tasks").rows == [("kept",)]


def test_the_schema_of_everybody_can_be_used_by_the_owner_of_the_database(
    server: PostgresServer,
) -> None:
    """`public` belongs to whoever owns the database."""
    as_role(server, "postgres", "CREATE DATABASE anns OWNER ann")
    url = f"{server.url.replace('postgres@/postgres', 'ann@/anns')}&schema=public"
    with open_store(url) as store:
        run(store, HERE, lambda uow: uow.tasks.add(Task(name="kept")))


def test_a_look_says_what_is_wrong(server: PostgresServer, schema: str) -> None:
    """Nothing of the schema is read for it."""
    as_role(
        server,
        "mallory",
        f"CREATE SCHEMA {schema}",
        f"CREATE VIEW {schema}.store AS SELECT 1/0 AS schema_version",
    )
    seen = probe(url_of(server, schema))
    assert seen.exists is None
    assert "belongs to the role 'mallory'" in str(seen.problem)


SETTINGS = {
    "TimeZone": "'Asia/Kathmandu'",
    "DateStyle": "'SQL, DMY'",
    "IntervalStyle": "'sql_standard'",
    "search_path": "'nowhere'",
    "lock_timeout": "1",
    "default_transaction_isolation": "'serializable'",
    "default_transaction_read_only": "on",
    "standard_conforming_strings": "off",
    "bytea_output": "'escape'",
    "client_min_messages": "'debug5'",
    "array_nulls": "off",
}


def test_no_setting_of_a_role_or_a_database_changes_anything(
    server: PostgresServer, schema: str
) -> None:
    """Rows, times, questions in SQL and upgrades are what they are without it."""
    plain = url_of(server, schema)
    with open_store(plain, dictionary=OLD) as store:
        older_rows = run(store, HERE, lambda uow: uow.add(TASKS, [TASKS.entity(name="old")]))
    odd = f"odd_{schema}"
    as_role(server, "postgres", f"CREATE ROLE {odd} LOGIN SUPERUSER")
    for name, value in SETTINGS.items():
        as_role(server, "postgres", f"ALTER ROLE {odd} SET {name} = {value}")
    url = url_of(server, schema, odd)
    with open_store(url) as store, open_store(plain) as straight:
        task = run(store, HERE, lambda uow: uow.tasks.add(Task(name="kept \\ ' \x07")))
        assert everything_in(store) == everything_in(straight)
        assert task in read(store, HERE, lambda uow: uow.tasks.get_many([task.id]))
        assert abs((task.created_at - older_rows[0].created_at).total_seconds()) < 600
        question = f"SELECT created_at, created_at::text FROM tasks WHERE id = '{task.id}'"
        ((moment, text),) = ask(url, question).rows
        assert moment == task.created_at
        assert text.startswith(f"{task.created_at:%Y-%m-%d %H:%M:%S}")
        assert store.schema_version == straight.schema_version
    assert probe(url) == probe(plain)
