"""Work on a Postgres server that takes long is not taken for waiting."""

import os
import time

import psycopg
import pytest

from herdbook.adapters import open_store
from herdbook.domain.errors import StoreUnavailable
from herdbook.domain.plan.model import Task
from herdbook.ports.engine.dictionary import TASKS
from herdbook.ports.engine.long_work import long_work
from herdbook.ports.engine.query import find
from herdbook.ports.unit_of_work.run import read, run
from herdbook.ports.unit_of_work.unit_of_work import unit_of_work
from tests.contract.older import NEW, OLD
from tests.contract.proxies import network
from tests.contract.silent_servers import (
    HANGS,
    PATIENCE,
    add,
    backends,
    count,
    does_not_hang,
    server,
    sleep_on_server,
    stopped,
    through,
    url,
)
from tests.contract.space import HERE
from tests.postgres_server import PostgresServer

__all__ = ["server", "url"]


def test_what_was_given_up_does_not_go_on_in_the_server(url: str, server: PostgresServer) -> None:
    """The server is told that nobody waits for the answer any more."""
    with open_store(url, patience=PATIENCE) as store:
        with does_not_hang(), pytest.raises(StoreUnavailable), unit_of_work(store, HERE) as uow:
            sleep_on_server(uow, 600)
        deadline = time.monotonic() + HANGS
        while backends(server):
            assert time.monotonic() < deadline
            time.sleep(0.05)


def test_a_slow_network_is_waited_for(url: str, server: PostgresServer) -> None:
    """As long as something comes, an answer takes its time."""
    text = os.urandom(225_000).hex()
    large = Task(name="large", description=text)
    with (
        network(server.port) as between,
        open_store(through(between, url), patience=0.2) as store,
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
        sleep_on_server(uow, 6)
        add(uow)
        uow.commit()
    with open_store(url) as store:
        assert read(store, HERE, count) == 2


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
        count(uow)


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
