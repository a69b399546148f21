"""A Postgres server that is down, slow, restarted or says no: told clearly, and nothing is lost."""

import itertools
import socket
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import psycopg
import pytest

from herdbook.adapters import open_store
from herdbook.domain.errors import (
    HerdbookError,
    InvalidValue,
    StoreBusy,
    StoreUnavailable,
)
from herdbook.domain.plan.model import Task
from herdbook.ports.engine.store import TryAgain
from herdbook.ports.unit_of_work.run import read, run
from herdbook.ports.unit_of_work.unit_of_work import unit_of_work
from tests.cases import for_each
from tests.contract import workers
from tests.contract.children import begun, event
from tests.contract.space import HERE, everything_in
from tests.contract.workers import COUNTER
from tests.postgres_server import PostgresServer, private_postgres

SECRET = "s3cr3t"  # noqa: S105 - there is nothing to be had with it
SPACE = "work/crowd"

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """A server of our own, which asks some roles for a password and lets some do little."""
    with private_postgres() as private:
        hba = private.folder / "data" / "pg_hba.conf"
        hba.write_text(f"host all +guarded 127.0.0.1/32 scram-sha-256\n{hba.read_text()}")
        private.restart()
        with psycopg.connect(private.url, autocommit=True) as connection:
            connection.execute(f"CREATE ROLE guarded LOGIN PASSWORD '{SECRET}'")
            connection.execute("GRANT CREATE ON DATABASE postgres TO guarded")
            connection.execute("CREATE ROLE guest LOGIN")
            connection.execute("REVOKE CREATE ON DATABASE postgres FROM PUBLIC")
        yield private


@pytest.fixture
def url(server: PostgresServer) -> str:
    """The URL of a place on it where there is no store yet."""
    return f"{server.url}&schema=store_{next(_numbers)}"


def tcp(server: PostgresServer, user: str, **options: str) -> str:
    """Its URL as a user's, with a schema of its own."""
    host = f"127.0.0.1:{server.port}"
    rest = "".join(f"&{name}={value}" for name, value in options.items())
    return f"postgresql://{user}@{host}/postgres?schema=store_{next(_numbers)}{rest}"


def filled(url: str) -> dict[str, list[Any]]:
    """Make a store with something in it; what it holds."""
    with open_store(url) as store:
        run(store, HERE, lambda uow: uow.tasks.add(Task(name="kept")))
        return everything_in(store)


def held(url: str) -> dict[str, list[Any]]:
    """What a store holds that must be there."""
    with open_store(url, create=False) as store:
        return everything_in(store)


def test_a_server_that_is_down_is_told(url: str, server: PostgresServer) -> None:
    """Neither opening nor using the store works, both say so; then it goes on as it was."""
    kept = filled(url)
    with open_store(url, patience=1) as store:
        server.stop()
        try:
            with pytest.raises(StoreUnavailable) as at_use, store.transaction(HERE, write=False):
                pass
            with pytest.raises(StoreUnavailable) as at_opening:
                open_store(url, patience=1)
        finally:
            server.start()
        assert str(at_use.value).startswith(f"{store.url} cannot be used: ")
        assert "Is the server running" not in str(at_opening.value)
        assert "No such file or directory" in str(at_opening.value)
        assert everything_in(store) == kept


def test_a_server_that_does_not_answer_is_told() -> None:
    """Who listens and says nothing is waited for as long as our patience."""
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        port = silent.getsockname()[1]
        with pytest.raises(StoreUnavailable) as refusal:
            open_store(f"postgresql://ann:{SECRET}@127.0.0.1:{port}/db", patience=2)
    assert str(refusal.value) == (
        f"postgresql://ann@127.0.0.1:{port}/db cannot be used: no answer within 2 s"
    )


def test_who_holds_a_space_too_long_is_named(url: str, server: PostgresServer) -> None:
    """StoreBusy names the session that holds it and since when, not whoever else is busy there."""
    kept = filled(url)
    schema = url.rpartition("=")[2]
    with psycopg.connect(server.url, application_name="bystander") as bystander:
        bystander.execute("SELECT 1")
        with psycopg.connect(server.url, application_name="hog") as hog:
            before = datetime.now(UTC)
            hog.execute(f"SELECT * FROM {schema}.heads WHERE space = %s FOR UPDATE", [HERE])
            with open_store(url, patience=0.3) as store:
                with pytest.raises(StoreBusy) as busy, unit_of_work(store, HERE):
                    pass
                assert everything_in(store) == kept
            pid = hog.info.backend_pid
    error = busy.value
    assert (error.holder, error.waited) == (f"server process {pid} (hog)", 0.3)
    assert error.since is not None
    assert abs(error.since - before).total_seconds() < 60
    assert str(error) == (
        f"{store.url} is held by server process {pid} (hog) since "
        f"{error.since.isoformat(timespec='seconds')}; gave up after 0.3 s. Nothing was written; "
        "try again"
    )
    with open_store(url) as store:
        run(store, HERE, lambda uow: uow.tasks.add(Task(name="after")))


def test_a_server_restarted_in_mid_flight_loses_and_doubles_nothing(
    url: str, server: PostgresServer
) -> None:
    """Four processes that ask again with their operation ids see every operation done once."""
    with open_store(url) as store:
        run(store, SPACE, workers.lay_out)
    over = event(url)
    writers = [begun(url, workers.insist, SPACE, number, over) for number in range(4)]
    with psycopg.connect(server.url, autocommit=True) as connection:
        _wait_for_more(connection, url)
    for _ in range(3):
        server.restart("immediate")
        with psycopg.connect(server.url, autocommit=True) as connection:
            _wait_for_more(connection, url)
    over.set()
    acknowledged = list(itertools.chain(*(wait() for wait in writers)))
    with open_store(url, create=False) as store:
        tasks, edges, journal = read(store, SPACE, workers.everything)
    ids = sorted(itertools.chain([COUNTER], *acknowledged))
    assert sorted(task.id for task in tasks) == ids
    assert len(edges) == 2 * len(acknowledged)
    (counter,) = (task for task in tasks if task.id == COUNTER)
    assert counter.order == len(acknowledged)
    assert [entry.seq for entry in journal] == list(range(1, len(journal) + 1))


def _wait_for_more(connection: psycopg.Connection[Any], url: str) -> None:
    """Let the writers get on, so that a restart meets them at work."""
    sql = f"SELECT seq FROM {url.rpartition('=')[2]}.heads"
    (seq,) = connection.execute(sql).fetchone() or (0,)
    while (connection.execute(sql).fetchone() or (0,))[0] < seq + 30:
        time.sleep(0.01)


def test_a_role_that_may_not_create_is_told(server: PostgresServer) -> None:
    """No store is made where its owner would not have let us."""
    url = tcp(server, "guest")
    with pytest.raises(StoreUnavailable) as refusal:
        open_store(url)
    assert not isinstance(refusal.value, TryAgain)
    assert str(refusal.value) == (f"{url} cannot be used: permission denied for database postgres")


def test_a_role_that_may_only_read_reads(url: str, server: PostgresServer) -> None:
    """Reading works, writing is refused with the server's reason, and nothing has changed."""
    kept = filled(url)
    schema = url.rpartition("=")[2]
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(f"GRANT USAGE ON SCHEMA {schema} TO guest")
        connection.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO guest")
    with open_store(f"{tcp(server, 'guest').partition('?')[0]}?schema={schema}") as store:
        assert everything_in(store) == kept
        with pytest.raises(StoreUnavailable) as refusal:
            run(store, HERE, lambda uow: uow.tasks.add(Task(name="not allowed")))
        assert (
            str(refusal.value) == f"{store.url} cannot be used: permission denied for table heads"
        )
        assert everything_in(store) == kept


@pytest.mark.parametrize(
    ("user", "database", "reason"),
    [
        (f"guarded:wr0ng{SECRET}", "postgres", "password authentication failed"),
        ("guarded", "postgres", "no password supplied"),
        (f"guarded:{SECRET}", "nowhere", 'database "nowhere" does not exist'),
        ("nobody_here", "postgres", 'role "nobody_here" does not exist'),
    ],
)
def test_a_server_that_lets_nobody_in_says_why(
    server: PostgresServer, user: str, database: str, reason: str
) -> None:
    """A wrong password, role or database is told at once and not tried again; no password is."""
    with pytest.raises(StoreUnavailable) as refusal:
        open_store(f"postgresql://{user}@127.0.0.1:{server.port}/{database}")
    assert not isinstance(refusal.value, TryAgain)
    assert reason in str(refusal.value)
    _is_kept_secret(refusal.value)


def _is_kept_secret(error: BaseException) -> None:
    """No part of an error that somebody could print has the password in it."""
    seen: BaseException | None = error
    while seen is not None:
        assert SECRET not in f"{seen} {seen!r} {seen.args}"
        seen = seen.__cause__ or (None if seen.__suppress_context__ else seen.__context__)


@pytest.mark.parametrize("where", ["user", "query"])
def test_a_password_is_nowhere_to_be_seen(server: PostgresServer, where: str) -> None:
    """It lets in, and neither the store's URL, its repr nor an error has it."""
    if where == "user":
        url = tcp(server, f"guarded:{SECRET}")
    else:
        url = tcp(server, "guarded", password=SECRET)
    with open_store(url, patience=0.2) as store:
        run(store, HERE, lambda uow: uow.tasks.add(Task(name="inside")))
        assert store.url.startswith(f"postgresql://guarded@127.0.0.1:{server.port}/postgres?schema")
        assert SECRET not in f"{store.url} {store!r} {vars(store)!r}"
        with unit_of_work(store, HERE), pytest.raises(StoreBusy) as busy, unit_of_work(store, HERE):
            pass
    _is_kept_secret(busy.value)
    with pytest.raises(HerdbookError) as closed:
        everything_in(store)
    _is_kept_secret(closed.value)


@pytest.mark.parametrize(
    "password", ["p@" + SECRET, "a%zz" + SECRET, "a:" + SECRET, "a+ " + SECRET, "ü" + SECRET]
)
def test_a_password_may_be_written_as_it_is(server: PostgresServer, password: str) -> None:
    """What ends it is the last @; what looks like an escape and is none is taken as it is."""
    role = f"role_{next(_numbers)}"
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {role} LOGIN PASSWORD '{password}' IN ROLE guarded")
        connection.execute(f"GRANT CREATE ON DATABASE postgres TO {role}")
    for spelt in (password, quote(password, safe="")):
        with open_store(tcp(server, f"{role}:{spelt}")) as store:
            assert SECRET not in store.url
    with pytest.raises(StoreUnavailable, match="authentication failed"):
        open_store(tcp(server, f"{role}:{password}x"))


@for_each(
    "rest",
    [
        f"ann:a/{SECRET}@host/db",
        f"ann:a?{SECRET}@host/db",
        f"ann:a#{SECRET}@host/db",
        f"ann:{SECRET}",
        f"ann:{SECRET}@[host/db",
        f"ann:{SECRET}@host:port/db",
        f"ann:{SECRET}@host/db?{SECRET}",
        f"ann:{SECRET}@host/db?pasword={SECRET}",
    ],
)
def test_a_url_that_cannot_be_read_is_not_repeated(rest: str) -> None:
    """A mistake in a URL is told without the password that stands near it."""
    with pytest.raises((InvalidValue, StoreUnavailable)) as refusal:
        open_store(f"postgresql://{rest}", patience=1)
    _is_kept_secret(refusal.value)
