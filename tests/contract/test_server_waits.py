"""Waits on a Postgres server: each of them ends with the patience."""

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

import psycopg
import pytest

from herdbook.adapters import open_store
from herdbook.adapters.sql_query import ask
from herdbook.adapters.sql_query.postgres import query_server
from herdbook.adapters.sql_query.sandbox import Deadline
from herdbook.adapters.stores.probe import probe
from herdbook.domain.errors import HerdbookError, StoreBusy, StoreUnavailable
from herdbook.ports.engine.store import Store, TryAgain
from herdbook.ports.unit_of_work.run import read, run
from herdbook.ports.unit_of_work.unit_of_work import unit_of_work
from tests.contract.proxies import network
from tests.contract.silent_servers import (
    PATIENCE,
    add,
    backends,
    count,
    does_not_hang,
    server,
    stopped,
    through,
    url,
)
from tests.contract.space import HERE
from tests.postgres_server import PostgresServer

__all__ = ["server", "url"]


@pytest.mark.parametrize("write", [True, False])
def test_a_stopped_server_process_is_not_waited_for_at_a_begin(
    url: str, server: PostgresServer, write: bool
) -> None:
    """A connection that was kept answers no more; afterwards all goes on."""
    with open_store(url, patience=PATIENCE) as store:
        run(store, HERE, add)
        with stopped(server), does_not_hang(), pytest.raises(StoreUnavailable, match="no answer"):
            run(store, HERE, add) if write else read(store, HERE, count)
        assert read(store, HERE, count) == 2


@pytest.mark.parametrize("write", [True, False])
def test_a_stopped_server_process_is_not_waited_for_at_a_statement(
    url: str, server: PostgresServer, write: bool
) -> None:
    """Nothing that the transaction did lasts."""
    with open_store(url, patience=PATIENCE) as store:
        with does_not_hang(), unit_of_work(store, HERE, write=write) as uow:
            if write:
                add(uow)
            with stopped(server), pytest.raises(StoreUnavailable, match="no answer") as refusal:
                count(uow)
            with pytest.raises(StoreUnavailable, match="broke"):
                count(uow)
        assert not isinstance(refusal.value, TryAgain)
        assert read(store, HERE, count) == 1


def test_a_rollback_is_not_waited_for(url: str, server: PostgresServer) -> None:
    """Who comes next gets another connection; a lock that is still held is told with its holder."""
    with open_store(url, patience=PATIENCE) as store, ExitStack() as later:
        with unit_of_work(store, HERE) as uow:
            add(uow)
            (pid,) = backends(server)
            later.enter_context(stopped(server))
        with does_not_hang():
            assert read(store, HERE, count) == 1
        with does_not_hang(), pytest.raises(StoreBusy) as busy:
            run(store, HERE, add)
        assert busy.value.holder == f"server process {pid} (herdbook)"
    with open_store(url) as store:
        run(store, HERE, add)
        assert read(store, HERE, count) == 2


@pytest.mark.parametrize("operation_id", [None, "op-1"])
def test_a_commit_without_an_answer_says_so(
    url: str, server: PostgresServer, operation_id: str | None
) -> None:
    """Nobody knows whether it happened; with an operation id, asking again finds out."""
    with network(server.port) as between:
        there = through(between, url)
        with open_store(there, patience=PATIENCE) as store:
            between.drop_behind(b"COMMIT\0")
            with does_not_hang(), pytest.raises(StoreUnavailable) as refusal:
                run(store, HERE, add, operation_id=operation_id)
    if operation_id is None:
        assert isinstance(refusal.value, TryAgain)
        assert "the answer to a commit was lost" in str(refusal.value)
        assert "not known" in str(refusal.value)
    with open_store(url) as store:
        if operation_id is not None:
            run(store, HERE, add, operation_id=operation_id)
        assert read(store, HERE, count) == 2


def _write(store: Store) -> object:
    return run(store, HERE, add)


def _read(store: Store) -> object:
    return read(store, HERE, count)


def _spaces(store: Store) -> object:
    return store.spaces()


@pytest.mark.parametrize("call", [_write, _read, _spaces])
def test_a_network_that_drops_everything_is_not_waited_for(
    url: str, server: PostgresServer, call: Callable[[Store], object]
) -> None:
    """Neither on a connection that was kept, nor for a new one."""
    with (
        network(server.port) as between,
        open_store(through(between, url), patience=PATIENCE) as store,
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
            open_store(through(between, url), patience=PATIENCE)
        with does_not_hang():
            problem = probe(through(between, url), patience=PATIENCE).problem
        assert problem is not None
        assert "no answer within 1 s" in problem
        with does_not_hang(), pytest.raises(StoreUnavailable, match="no answer within 1 s"):
            ask(through(between, url), "SELECT 1", patience=PATIENCE)


@pytest.mark.parametrize(
    "word", [b"pg_backend_pid", b"DECLARE answer", b"asked", b"FETCH", b"WITH RECURSIVE"]
)
def test_a_question_in_sql_is_not_waited_for(url: str, server: PostgresServer, word: bytes) -> None:
    """Whichever of its statements it is that gets no answer."""
    with open_store(url) as store, network(server.port) as between:
        there = through(between, url)
        question = partial(
            query_server, store, there, "SELECT name FROM tasks", deadline=Deadline(1), limit=9
        )
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
            problem = probe(through(between, url), patience=PATIENCE).problem
        assert problem is not None
        assert "no answer" in problem


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
                        run(store, HERE, add)
                    assert busy.value.holder is not None
        finally:
            admin.execute("ALTER ROLE postgres RESET lock_timeout")


def test_a_name_that_nobody_knows_is_told_at_once() -> None:
    """It is no server that starts again."""
    with does_not_hang(), pytest.raises(HerdbookError, match="nowhere.invalid"):
        open_store("postgresql://nobody@nowhere.invalid/x", patience=600)
