"""Waits on a Postgres server: each ends with the patience, honest work does not, Ctrl-C always."""

import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from typing import Any

import psycopg
import pytest

from herdbook.adapters import open_store
from herdbook.adapters.asking import ask
from herdbook.adapters.asking.postgres import ask_server
from herdbook.adapters.looking import look
from herdbook.domain.errors import HerdbookError, StoreBusy, StoreUnavailable
from herdbook.domain.plan import Task
from herdbook.ports.dictionary import TASKS
from herdbook.ports.long_work import long_work
from herdbook.ports.query import find
from herdbook.ports.run import read, run
from herdbook.ports.store import Store, TryAgain
from herdbook.ports.unit_of_work import UnitOfWork, unit_of_work
from tests.contract.children import REPOSITORY
from tests.contract.older import NEW, OLD
from tests.contract.proxies import Network, network
from tests.contract.space import HERE, everything_in
from tests.postgres_server import PostgresServer, private_postgres

PATIENCE = 1.0
HANGS = 30.0
"""What takes that many seconds counts as hanging; with that patience it ends long before."""

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with private_postgres() as private:
        yield private


@pytest.fixture
def url(server: PostgresServer) -> str:
    """The URL of a store with a task in it."""
    made = f"{server.url}&schema=waits_{next(_numbers)}"
    with open_store(made) as store:
        run(store, HERE, _add)
    return made


def _add(uow: UnitOfWork) -> Task:
    return uow.tasks.add(Task(name="kept"))


def _count(uow: UnitOfWork) -> int:
    return len(uow.select(find(TASKS)))


@contextmanager
def does_not_hang() -> Iterator[None]:
    began = time.monotonic()
    yield
    assert time.monotonic() - began < HANGS


def _backends(server: PostgresServer) -> list[int]:
    """The server processes of Herdbook's connections."""
    with psycopg.connect(server.url, autocommit=True) as admin:
        found = admin.execute(
            "SELECT pid FROM pg_stat_activity WHERE application_name = 'herdbook'"
        ).fetchall()
    return [pid for (pid,) in found]


@contextmanager
def stopped(server: PostgresServer) -> Iterator[None]:
    """Within the block, the server processes that serve Herdbook now do nothing."""
    pids = _backends(server)
    assert pids
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


@pytest.mark.parametrize("write", [True, False])
def test_a_stopped_server_process_is_not_waited_for_at_a_begin(
    url: str, server: PostgresServer, write: bool
) -> None:
    """A connection that was kept answers no more; afterwards all goes on."""
    with open_store(url, patience=PATIENCE) as store:
        run(store, HERE, _add)
        with stopped(server), does_not_hang(), pytest.raises(StoreUnavailable, match="no answer"):
            run(store, HERE, _add) if write else read(store, HERE, _count)
        assert read(store, HERE, _count) == 2


@pytest.mark.parametrize("write", [True, False])
def test_a_stopped_server_process_is_not_waited_for_at_a_statement(
    url: str, server: PostgresServer, write: bool
) -> None:
    """Nothing that the transaction did lasts."""
    with open_store(url, patience=PATIENCE) as store:
        with does_not_hang(), unit_of_work(store, HERE, write=write) as uow:
            if write:
                _add(uow)
            with stopped(server), pytest.raises(StoreUnavailable, match="no answer") as refusal:
                _count(uow)
            with pytest.raises(StoreUnavailable, match="broke"):
                _count(uow)
        assert not isinstance(refusal.value, TryAgain)
        assert read(store, HERE, _count) == 1


@pytest.mark.parametrize("operation_id", [None, "op-1"])
def test_a_commit_without_an_answer_says_so(
    url: str, server: PostgresServer, operation_id: str | None
) -> None:
    """Nobody knows whether it happened; with an operation id, asking again finds out."""
    with network(server.port) as between:
        there = _through(between, url)
        with open_store(there, patience=PATIENCE) as store:
            between.drop_behind(b"COMMIT\0")
            with does_not_hang(), pytest.raises(StoreUnavailable) as refusal:
                run(store, HERE, _add, operation_id=operation_id)
    if operation_id is None:
        assert isinstance(refusal.value, TryAgain)
        assert "the answer to a commit was lost" in str(refusal.value)
        assert "not known" in str(refusal.value)
    with open_store(url) as store:
        if operation_id is not None:
            run(store, HERE, _add, operation_id=operation_id)
        assert read(store, HERE, _count) == 2


def _through(between: Network, url: str) -> str:
    return f"postgresql://postgres@127.0.0.1:{between.port}/postgres?{url.rpartition('&')[2]}"


def _write(store: Store) -> object:
    return run(store, HERE, _add)


def _read(store: Store) -> object:
    return read(store, HERE, _count)


def _spaces(store: Store) -> object:
    return store.spaces()


@pytest.mark.parametrize("call", [_write, _read, _spaces])
def test_a_network_that_drops_everything_is_not_waited_for(
    url: str, server: PostgresServer, call: Callable[[Store], object]
) -> None:
    """Neither on a connection that was kept, nor for a new one."""
    with (
        network(server.port) as between,
        open_store(_through(between, url), patience=PATIENCE) as store,
    ):
        call(store)
        between.drop()
        with does_not_hang(), pytest.raises(StoreUnavailable, match="no answer"):
            call(store)
        with does_not_hang(), pytest.raises(StoreUnavailable, match="no answer within 1 s"):
            call(store)


def test_a_server_behind_such_a_network_is_not_waited_for(url: str, server: PostgresServer) -> None:
    """Nor is it to be opened, looked at or asked."""
    with network(server.port) as between:
        between.drop()
        with does_not_hang(), pytest.raises(StoreUnavailable, match="no answer within 1 s"):
            open_store(_through(between, url), patience=PATIENCE)
        with does_not_hang():
            problem = look(_through(between, url), patience=PATIENCE).problem
        assert problem is not None
        assert "no answer within 1 s" in problem
        with does_not_hang(), pytest.raises(StoreUnavailable, match="no answer within 1 s"):
            ask(_through(between, url), "SELECT 1", patience=PATIENCE)


@pytest.mark.parametrize(
    "word", [b"pg_backend_pid", b"DECLARE answer", b"asked", b"FETCH", b"WITH RECURSIVE"]
)
def test_a_question_in_sql_is_not_waited_for(url: str, server: PostgresServer, word: bytes) -> None:
    """Whichever of its statements it is that gets no answer."""
    with open_store(url) as store, network(server.port) as between:
        there = _through(between, url)
        question = partial(ask_server, store, there, "SELECT name FROM tasks", patience=1, limit=9)
        if word == b"WITH RECURSIVE":
            question = partial(ask, there, "SELECT name FROM tasks", patience=1)
        between.drop_behind(word)
        with does_not_hang(), pytest.raises(StoreUnavailable, match="no answer"):
            question()


def test_a_look_is_not_waited_for(url: str, server: PostgresServer) -> None:
    """What is seen of a server that falls silent is that."""
    with network(server.port) as between:
        between.drop_behind(b"WITH RECURSIVE")
        with does_not_hang():
            problem = look(_through(between, url), patience=PATIENCE).problem
        assert problem is not None
        assert "no answer" in problem


def test_what_was_given_up_does_not_go_on_in_the_server(url: str, server: PostgresServer) -> None:
    """The server is told that nobody waits for the answer any more."""
    with open_store(url, patience=PATIENCE) as store:
        with does_not_hang(), pytest.raises(StoreUnavailable), unit_of_work(store, HERE) as uow:
            _sleep(uow, 600)
        deadline = time.monotonic() + HANGS
        while _backends(server):
            assert time.monotonic() < deadline
            time.sleep(0.05)


def _sleep(uow: UnitOfWork, seconds: float) -> None:
    """Let the server work on one statement for that long."""
    uow.session._run(f"SELECT pg_sleep({seconds})")  # type: ignore[attr-defined]


def test_a_slow_network_is_waited_for(url: str, server: PostgresServer) -> None:
    """As long as something comes, an answer takes its time."""
    text = os.urandom(225_000).hex()
    large = Task(name="large", description=text)
    with (
        network(server.port) as between,
        open_store(_through(between, url), patience=0.2) as store,
    ):
        between.bytes_per_second = 150_000
        began = time.monotonic()
        run(store, HERE, lambda uow: uow.tasks.add(large))
        sent = time.monotonic()
        tasks = read(store, HERE, lambda uow: uow.select(find(TASKS)))
        assert min(sent - began, time.monotonic() - sent) > 2.5
    assert [task.description for task in tasks if task.name == "large"] == [text]


def test_long_work_is_not_ended_by_patience(url: str) -> None:
    """A statement that the server works on is waited for, if it is known to take long."""
    with open_store(url, patience=0.2) as store, long_work(), unit_of_work(store, HERE) as uow:
        _sleep(uow, 6)
        _add(uow)
        uow.commit()
    with open_store(url) as store:
        assert read(store, HERE, _count) == 2


def test_long_work_that_is_none_is_ended(url: str, server: PostgresServer) -> None:
    """A server process that has not taken up the statement is not at work."""
    with (
        open_store(url, patience=PATIENCE) as store,
        long_work(),
        does_not_hang(),
        pytest.raises(StoreUnavailable, match="no answer"),
        unit_of_work(store, HERE) as uow,
        stopped(server),
    ):
        _count(uow)


def test_an_upgrade_takes_the_time_it_takes(server: PostgresServer) -> None:
    """Building an index for longer than the patience is no reason to give up."""
    url = f"{server.url}&schema=slow_upgrade"
    open_store(url, dictionary=OLD).close()
    with psycopg.connect(server.url, autocommit=True) as admin:
        admin.execute("CREATE TABLE public.dawdled ()")
        admin.execute(
            "CREATE FUNCTION public.dawdle() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN "
            "IF NOT EXISTS (SELECT FROM public.dawdled) THEN INSERT INTO public.dawdled "
            "DEFAULT VALUES; PERFORM pg_sleep(6); END IF; END $$"
        )
        admin.execute(
            "CREATE EVENT TRIGGER dawdle ON ddl_command_start WHEN TAG IN ('CREATE INDEX') "
            "EXECUTE FUNCTION public.dawdle()"
        )
        try:
            with open_store(url, dictionary=NEW, patience=0.2) as store:
                assert store.schema_version == NEW.version
            assert admin.execute("SELECT count(*) FROM public.dawdled").fetchone() == (1,)
        finally:
            admin.execute("DROP EVENT TRIGGER dawdle")


def test_a_lock_is_waited_for_as_long_as_the_patience(url: str, server: PostgresServer) -> None:
    """Also where the server, the database or the role says something else about locks."""
    schema = url.rpartition("=")[2]
    with psycopg.connect(server.url, autocommit=True) as admin:
        admin.execute("ALTER ROLE postgres SET lock_timeout = 0")
        try:
            with psycopg.connect(server.url) as hog:
                hog.execute(f"SELECT * FROM {schema}.heads FOR UPDATE")
                with open_store(url, patience=PATIENCE) as store, does_not_hang():
                    with pytest.raises(StoreBusy) as busy:
                        run(store, HERE, _add)
                    assert busy.value.holder is not None
        finally:
            admin.execute("ALTER ROLE postgres RESET lock_timeout")


INTERRUPTED = """
import sys
from herdbook.adapters import open_store
from herdbook.adapters.asking import ask
from herdbook.domain.plan import Task
from herdbook.ports.run import read, run
from herdbook.ports.unit_of_work import unit_of_work

url, scene = sys.argv[1:]

def ready():
    print("ready", flush=True)

def add(uow):
    uow.tasks.add(Task(name="x"))

def wait(uow):
    ready()
    sys.stdin.readline()
    uow.tasks.find("x")

try:
    if scene == "connecting":
        ready()
        open_store(url, patience=600)
    with open_store(url, patience=600) as store:
        match scene:
            case "locked":
                ready()
                run(store, "work/here", add)
            case "stopped":
                run(store, "work/here", wait)
            case "stopped reading":
                read(store, "work/here", wait)
            case "down":
                ready()
                sys.stdin.readline()
                run(store, "work/here", add)
            case "working":
                with unit_of_work(store, "work/here") as uow:
                    ready()
                    uow.session._run("SELECT pg_sleep(600)")
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


class Waiting:
    """A program that waits for a server and is interrupted."""

    def __init__(self, url: str, scene: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", INTERRUPTED, url, scene],
            cwd=REPOSITORY,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n"

    def go_on(self) -> None:
        """Let it do what it waits in."""
        assert self._process.stdin is not None
        self._process.stdin.write("go\n")
        self._process.stdin.flush()

    def interrupt(self) -> float:
        """Press Ctrl-C while it waits; how many seconds it took to end."""
        time.sleep(1)
        assert self._process.poll() is None
        began = time.monotonic()
        self._process.send_signal(signal.SIGINT)
        try:
            told, _ = self._process.communicate(timeout=HANGS)
        finally:
            self._process.kill()
        assert told == "interrupted\n"
        return time.monotonic() - began


def test_ctrl_c_ends_every_wait(url: str, server: PostgresServer) -> None:
    """For a lock, a stopped server process, honest work, a silent server and one that is down."""
    took: dict[str, float] = {}
    schema = url.rpartition("=")[2]
    with psycopg.connect(server.url) as hog:
        hog.execute(f"SELECT * FROM {schema}.heads FOR UPDATE")
        took["locked"] = Waiting(url, "locked").interrupt()
    took["working"] = Waiting(url, "working").interrupt()
    for scene in ("stopped", "stopped reading"):
        waiting = Waiting(url, scene)
        with stopped(server):
            waiting.go_on()
            took[scene] = waiting.interrupt()
    with network(server.port) as between:
        between.drop()
        took["connecting"] = Waiting(_through(between, url), "connecting").interrupt()
    waiting = Waiting(url, "down")
    server.stop()
    try:
        waiting.go_on()
        took["down"] = waiting.interrupt()
    finally:
        server.start()
    assert max(took.values()) < HANGS / 3, took


def test_a_connection_that_nobody_uses_is_closed(url: str, server: PostgresServer) -> None:
    """Others need it, and the store stays open and usable."""
    with open_store(url) as store:
        with _threads(8, lambda: read(store, HERE, _count)):
            pass
        deadline = time.monotonic() + HANGS
        while _backends(server):
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert read(store, HERE, _count) == 1
        assert len(_backends(server)) == 1
    with closing(open_store(url)) as store:
        _read(store)
    assert not _backends(server)


@contextmanager
def _threads(number: int, work: Callable[[], Any]) -> Iterator[None]:
    threads = [threading.Thread(target=work) for _ in range(number)]
    for thread in threads:
        thread.start()
    yield
    for thread in threads:
        thread.join()


def test_a_connection_that_the_server_closed_is_not_used(url: str, server: PostgresServer) -> None:
    """A restart between two transactions is noticed by nobody, also without `run`."""
    with open_store(url) as store:
        before = everything_in(store)
        server.restart("immediate")
        assert everything_in(store) == before


def test_a_name_that_nobody_knows_is_told_at_once() -> None:
    """It is no server that starts again."""
    with does_not_hang(), pytest.raises(HerdbookError, match="nowhere.invalid"):
        open_store("postgresql://nobody@nowhere.invalid/x", patience=600)
