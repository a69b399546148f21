"""PgBouncer between Herdbook and PostgreSQL, pooling by transaction."""

import itertools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Barrier
from typing import Any

import psutil
import psycopg
import pytest

from herdbook.adapters import open_store
from herdbook.adapters.sql_query import ask
from herdbook.adapters.stores.probe import probe
from herdbook.domain.errors import StoreUnavailable
from herdbook.domain.plan.model import Task
from herdbook.ports.engine.long_work import long_work
from herdbook.ports.engine.store import Store
from herdbook.ports.unit_of_work.run import read, run
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork, unit_of_work
from herdbook.services.journal.feed import Feed
from herdbook.services.stores.store_check import check
from tests.contract import crowds
from tests.contract.children import REPOSITORY, apart, barrier, begun
from tests.contract.crowds import SPACE
from tests.contract.followers import commit_elsewhere
from tests.contract.space import everything_in
from tests.e2e.conftest import Person
from tests.pgbouncer_server import running_pgbouncer, straight_url
from tests.postgres_server import PostgresServer, private_postgres

CLIENTS = 6
CONNECTIONS = 2
CALLS = 40

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with private_postgres() as private:
        yield private


@pytest.fixture(scope="module")
def pooled(server: PostgresServer) -> Iterator[str]:
    """Where clients share two server connections."""
    with running_pgbouncer(server, size=CONNECTIONS) as url:
        yield url


@pytest.fixture
def url(pooled: str) -> str:
    return f"{pooled}?schema=pooled_{next(_numbers)}"


def _add_and_read(url: str, start: Barrier, number: int) -> list[str]:
    """Write, read, count, look and ask in turn, as different programs do."""
    start.wait()
    added: list[str] = []
    with open_store(url) as store:
        for call in range(CALLS):
            name = f"{number}-{call}"
            added.append(run(store, SPACE, crowds.add, name))
            assert name in read(store, SPACE, crowds.names)
            if call % 10 == number:
                assert store.spaces() == [SPACE]
                assert probe(url).exists
                rows = ask(url, f"SELECT name FROM tasks WHERE name = '{name}'").rows
                assert rows == [(name,)]
    return added


def test_six_clients_share_two_server_connections(url: str, server: PostgresServer) -> None:
    """No call fails, nothing is lost, and nobody hears what another client said."""
    open_store(url).close()
    start = barrier(url, CLIENTS)
    running = [begun(url, _add_and_read, start, number) for number in range(CLIENTS)]
    added = sorted(itertools.chain(*(wait() for wait in running)))
    assert len(added) == CLIENTS * CALLS
    with open_store(url) as store:
        assert read(store, SPACE, crowds.names) == added
        assert check(store) == []
    with psycopg.connect(server.url, autocommit=True) as admin:
        ((sessions,),) = admin.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' "
            "AND pid <> pg_backend_pid()"
        ).fetchall()
    assert sessions <= CONNECTIONS


def test_nothing_is_left_on_a_shared_session(url: str) -> None:
    """Neither a setting nor a prepared statement outlives the transaction it was for."""
    with open_store(url) as store:
        for number in range(12):
            run(store, SPACE, crowds.add, str(number))
            read(store, SPACE, crowds.names)
    asked = [
        ("SHOW search_path", '"$user", public'),
        ("SHOW lock_timeout", "0"),
        ("SELECT count(*)::text FROM pg_prepared_statements", "0"),
    ]
    plain = url.partition("?")[0]
    for question, answer in asked:
        with psycopg.connect(plain, autocommit=True) as client:
            assert client.execute(question.encode()).fetchall() == [(answer,)]


def test_what_others_leave_on_a_shared_session_changes_nothing(
    url: str, server: PostgresServer
) -> None:
    """A client that sets what it likes on the server connections that we get next."""
    with open_store(url) as store:
        first = run(store, SPACE, lambda uow: uow.tasks.add(Task(name="first")))
    plain = url.partition("?")[0]
    for _ in range(8):
        with psycopg.connect(plain, autocommit=True) as other:
            for statement in (
                "SET TimeZone TO 'Asia/Kathmandu'",
                "SET DateStyle TO 'SQL, DMY'",
                "SET search_path TO nowhere",
                "SET lock_timeout TO 1",
                "SET default_transaction_read_only TO on",
                "SET default_transaction_isolation TO serializable",
                "SET bytea_output TO 'escape'",
            ):
                other.execute(statement.encode())
    with open_store(url) as store:
        second = run(store, SPACE, lambda uow: uow.tasks.add(Task(name="second")))
        assert read(store, SPACE, crowds.names) == ["first", "second"]
        assert 0 <= (second.created_at - first.created_at).total_seconds() < 600
        rows = ask(url, "SELECT created_at FROM tasks ORDER BY name").rows
        assert rows == [(first.created_at,), (second.created_at,)]
    straight = f"{server.url}&{url.partition('?')[2]}"
    with open_store(url) as store, open_store(straight) as other_way:
        assert everything_in(store, SPACE) == everything_in(other_way, SPACE)


def test_a_pooler_is_noticed(url: str, server: PostgresServer) -> None:
    """Statements are prepared on a session of one's own, and only there."""
    with psycopg.connect(server.url, autocommit=True) as admin:
        for place, direct in ((url, False), (f"{server.url}&schema=direct", True)):
            with open_store(place) as store:
                for number in range(12):
                    run(store, SPACE, crowds.add, str(number))
                with unit_of_work(store, SPACE, write=False) as uow:
                    names = _prepared_names(uow)
            assert bool(names) is direct
        assert admin.execute("SELECT count(*) FROM pg_prepared_statements").fetchone() == (0,)


def test_a_pooler_that_was_not_noticed_is_found_out(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A prepared statement that is not there is nobody's error, and none is prepared any more."""
    open_store(url).close()
    monkeypatch.setattr("herdbook.adapters.postgres.begin.is_direct", lambda _: True)
    stores = [open_store(url) for _ in range(CLIENTS)]
    try:
        with ThreadPoolExecutor(CLIENTS) as threads:
            for store in stores:
                threads.submit(lambda store=store: _add_many(store)).result()
            added = list(threads.map(_add_many, stores))
        assert read(stores[0], SPACE, crowds.names) == sorted(["x"] * 2 * CALLS * len(added))
        assert all(store._connections._is_shared for store in stores)  # type: ignore[attr-defined]
    finally:
        for store in stores:
            store.close()


def _add_many(store: Store) -> None:
    for _ in range(CALLS):
        run(store, SPACE, crowds.add, "x")


def _prepared_names(uow: UnitOfWork) -> list[Any]:
    run_statement = uow.session._run  # type: ignore[attr-defined]
    return list(run_statement("SELECT name FROM pg_prepared_statements"))


def test_long_work_goes_on_behind_a_pooler(url: str) -> None:
    """Whether the server is at work is asked about the session that serves us at that moment."""
    with open_store(url, patience=0.2) as store, long_work(), unit_of_work(store, SPACE) as uow:
        uow.session._run("SELECT pg_sleep(6)")  # type: ignore[attr-defined]
        uow.tasks.add(Task(name="after long work"))
        uow.commit()
    with open_store(url) as store:
        assert read(store, SPACE, crowds.names) == ["after long work"]


@contextmanager
def stopped(pids: list[int]) -> Iterator[None]:
    """Within the block these processes do nothing."""
    assert pids
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def test_a_pooler_that_is_stopped_is_not_waited_for(server: PostgresServer) -> None:
    """Its silence is a server's silence."""
    with running_pgbouncer(server) as pooled:
        url = f"{pooled}?schema=stopped"
        with open_store(url, patience=1) as store:
            run(store, SPACE, crowds.add, "before")
            began = time.monotonic()
            with stopped(_listening_on(pooled)):
                with pytest.raises(StoreUnavailable, match="no answer"):
                    run(store, SPACE, crowds.add, "lost")
                with pytest.raises(StoreUnavailable, match="no answer"):
                    open_store(url, patience=1)
            assert time.monotonic() - began < 30
            run(store, SPACE, crowds.add, "after")
            assert {"before", "after"} <= set(read(store, SPACE, crowds.names))


def _listening_on(url: str) -> list[int]:
    """The process behind a port of this machine, by its settings."""
    port = url.rpartition(":")[2].partition("/")[0]
    found = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        command = place.read_bytes().split(b"\0")
        if command[0].endswith(b"pgbouncer") and len(command) > 2:
            settings = Path(command[2].decode()).read_text()
            if f"listen_port = {port}\n" in settings:
                found.append(int(place.parent.name))
    return found


def test_it_ends_with_the_process_that_asked_for_it() -> None:
    """A killed test run leaves neither a process nor a folder."""
    script = (
        "import time\n"
        "from tests.pgbouncer_server import running_pgbouncer\n"
        "from tests.postgres_server import private_postgres\n"
        "with private_postgres() as server, running_pgbouncer(server) as url:\n"
        "    print(url, flush=True)\n"
        "    time.sleep(600)\n"
    )
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True) as asker:
        assert asker.stdout is not None
        url = asker.stdout.readline().strip()
        (pid,) = _listening_on(url)
        asker.kill()
    deadline = time.monotonic() + 60
    while psutil.pid_exists(pid):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_the_program_works_behind_a_pooler(person: Person, app: Path, url: str) -> None:
    """Commands that write, read, ask, look and check."""
    person.chooses(url)
    person.runs(app, "task", "add", "x")
    assert [task["name"] for task in person.asks(app, "task", "list")] == ["x"]
    assert "x" in person.runs(app, "sql", "SELECT name FROM tasks")
    for command in ("status", "where", "doctor", "check", "board"):
        person.runs(app, command)


def test_a_session_of_ones_own_can_be_had_too(url: str) -> None:
    """A pooler that keeps a server connection for each client is as good."""
    with open_store(straight_url(url)) as store:
        run(store, SPACE, crowds.add, "x")
    with open_store(url) as store:
        assert read(store, SPACE, crowds.names) == ["x"]


def test_changes_of_other_machines_are_found_by_looking(url: str, tmp_path: Path) -> None:
    """No LISTEN works through it, and none is tried; here a ring comes as everywhere."""
    with open_store(url) as store:
        run(store, SPACE, lambda uow: uow.tasks.add(Task(name="first")))
        with Feed(store, SPACE, 1, look=0.05) as feed:
            feed.fileno()
            apart(commit_elsewhere, url, str(tmp_path), SPACE)
            while not feed.take():
                feed.wait()
            assert feed.since == 2
        with Feed(store, SPACE, 2, look=3_600.0) as feed:
            feed.fileno()
            run(store, SPACE, lambda uow: uow.tasks.add(Task(name="here")))
            assert feed.wait()
            assert len(feed.take()) == 1
