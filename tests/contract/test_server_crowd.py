"""A crowd on a Postgres server that has few connections, or starts again: all get on."""

import itertools
import time
from collections.abc import Iterator

import psycopg
import pytest

from herdbook.adapters import open_store
from herdbook.ports.unit_of_work.run import read, run
from herdbook.services.stores.store_check import check
from tests.contract import crowds
from tests.contract.children import barrier, begun, event
from tests.contract.crowds import SPACE
from tests.postgres_server import PostgresServer, private_postgres

CONNECTIONS = 10
CROWD = 50
RESTARTED = 30


@pytest.fixture
def small() -> Iterator[PostgresServer]:
    """A server with few connections."""
    with private_postgres() as server:
        with (server.folder / "data" / "postgresql.conf").open("a") as settings:
            settings.write(f"max_connections = {CONNECTIONS}\n")
        server.restart()
        yield server


def test_fifty_processes_share_ten_connections(small: PostgresServer) -> None:
    """Everybody waits for a connection, gets one and gives it back."""
    open_store(small.url).close()
    start = barrier(small.url, CROWD)
    running = [begun(small.url, crowds.add_some, start, number, 4) for number in range(CROWD)]
    added = sorted(itertools.chain(*(wait() for wait in running)))
    assert len(added) == CROWD * 4
    with open_store(small.url) as store:
        assert read(store, SPACE, crowds.names) == added
        assert check(store) == []


def test_idle_processes_leave_their_connections_to_others(small: PostgresServer) -> None:
    """More stores are open than there are connections, and each of them is used in turn."""
    stores = [open_store(small.url) for _ in range(CONNECTIONS + 4)]
    try:
        for number, store in enumerate([*stores, *stores]):
            run(store, SPACE, crowds.add, str(number))
        assert len(read(stores[0], SPACE, crowds.names)) == 2 * len(stores)
    finally:
        for store in stores:
            store.close()


def test_a_restart_reaches_nobody_but_in_a_commit() -> None:
    """Thirty processes write, read and open while the server is killed and starts again.

    What nobody can know is told as such: whether a commit happened whose answer was lost.
    """
    with private_postgres() as server:
        open_store(server.url).close()
        over = event(server.url)
        running = [begun(server.url, crowds.add_until, number, over) for number in range(RESTARTED)]
        for _ in range(2):
            _wait_for_more(server)
            server.restart("immediate")
        _wait_for_more(server)
        over.set()
        answers = [wait() for wait in running]
        added, doubtful, reasons = (
            list(itertools.chain(*each)) for each in zip(*answers, strict=True)
        )
        with open_store(server.url) as store:
            found = read(store, SPACE, crowds.names)
            assert check(store) == []
    assert [each for each in reasons if "the answer to a commit was lost" not in each] == []
    assert len(found) == len(set(found))
    assert set(added) <= set(found) <= set(added) | set(doubtful)


def _wait_for_more(server: PostgresServer) -> None:
    """Let the crowd get on, so that a restart meets it at work."""
    with psycopg.connect(server.url, autocommit=True) as connection:
        question = "SELECT coalesce(max(seq), 0) FROM herdbook.heads"
        ((before,),) = connection.execute(question).fetchall()
        while connection.execute(question).fetchall()[0][0] < before + 100:
            time.sleep(0.02)
