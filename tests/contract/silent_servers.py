"""A Postgres server whose processes are stopped, or that is out of reach: for tests of waits."""

import itertools
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psycopg
import pytest

from herdbook.adapters import open_store
from herdbook.domain.plan.model import Task
from herdbook.ports.engine.dictionary import TASKS
from herdbook.ports.engine.query import find
from herdbook.ports.unit_of_work.run import run
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from tests.contract.proxies import Network
from tests.contract.space import HERE
from tests.postgres_server import PostgresServer, private_postgres

PATIENCE = 1.0
HANGS = 30.0
"""What takes that many seconds counts as hanging; with that patience it ends long before."""

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """A server of our own, whose processes may be stopped."""
    with private_postgres() as private:
        yield private


@pytest.fixture
def url(server: PostgresServer) -> str:
    """The URL of a store with a task in it."""
    made = f"{server.url}&schema=waits_{next(_numbers)}"
    with open_store(made) as store:
        run(store, HERE, add)
    return made


def add(uow: UnitOfWork) -> Task:
    """Add a task."""
    return uow.tasks.add(Task(name="kept"))


def count(uow: UnitOfWork) -> int:
    """How many tasks there are."""
    return len(uow.select(find(TASKS)))


@contextmanager
def does_not_hang() -> Iterator[None]:
    """What is done in the block ends in a time that nobody calls hanging."""
    began = time.monotonic()
    yield
    assert time.monotonic() - began < HANGS


def backends(server: PostgresServer) -> list[int]:
    """The server processes of Herdbook's connections."""
    with psycopg.connect(server.url, autocommit=True) as admin:
        found = admin.execute(
            "SELECT pid FROM pg_stat_activity WHERE application_name = 'herdbook'"
        ).fetchall()
    return [pid for (pid,) in found]


@contextmanager
def stopped(server: PostgresServer) -> Iterator[None]:
    """Within the block, the server processes that serve Herdbook now do nothing."""
    pids = backends(server)
    assert pids
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def through(between: Network, url: str) -> str:
    """The store at a URL, as seen through a network."""
    return f"postgresql://postgres@127.0.0.1:{between.port}/postgres?{url.rpartition('&')[2]}"


def sleep_on_server(uow: UnitOfWork, seconds: float) -> None:
    """Let the server work on one statement for that long."""
    uow.session._run(f"SELECT pg_sleep({seconds})")  # type: ignore[attr-defined]
