"""Our checkpoints against LangGraph's own savers, in one run on one machine.

LMDB is compared with the SQLite saver, Postgres with the Postgres saver on the same server, each on
the same steps of the same workflow, as durable as ours: SQLite keeps its write-ahead log and syncs
it at every commit (`synchronous = FULL`). Every side has one saver for the whole run, as a program
has, and reads what it has just put, as a graph's next run does; `cold` are the reads of a saver
whose store is open and that has seen nothing yet. The `floor` tells how long the engines
themselves take to make some bytes last. Run with `python -m benchmarks.checkpoints`;
sizes are those on disk after 200 steps.
"""

import argparse
import itertools
import os
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import lmdb
import psycopg
from attrs import field, frozen
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver

from herdbook.adapters.langgraph import HerdbookSaver
from tests.contract.workflows import config, steps
from tests.postgres_server import running_postgres

SPACE = "checkpoints/bench"
BARS = {"lmdb": 2.0, "postgres": 1.0}
"""How many times as fast as the peer we want to be."""
ROOM = 5_000_000
STRETCH = 20
STATES: dict[str, tuple[str, int]] = {
    "1 MB, one channel": ("one channel", 1_000_000),
    "1 MB, 100 channels": ("many channels", 1_000_000),
    "100 KB, 100 channels": ("many channels", 100_000),
    "10 KB, one channel": ("one channel", 10_000),
}
_threads = itertools.count(1)


@frozen
class Side:
    """One saver, how to make another on the same store, and how large its store is."""

    name: str
    saver: Any
    fresh: Callable[[], Any]
    size: Callable[[], int]
    times: dict[str, list[float]] = field(factory=dict)

    def timed(self, what: str, work: Callable[[], Any]) -> Any:
        """Do a piece of work and note how long it took."""
        start = time.perf_counter()
        answer = work()
        self.times.setdefault(what, []).append(time.perf_counter() - start)
        return answer

    def median(self, what: str) -> float:
        """How long a piece of work took, as a rule."""
        return statistics.median(self.times[what])


def play(sides: list[Side], shape: str, size: int, number: int) -> None:
    """Let every side keep the same workflow, in turn, so that noise hits all alike.

    Each has some goes at a stretch, as one busy process has.
    """
    thread = f"thread {next(_threads)}"
    places = [config(thread) for _ in sides]
    made = steps(shape, number, size)
    while stretch := list(itertools.islice(made, STRETCH)):
        for at, side in enumerate(sides):
            for checkpoint, metadata, fresh in stretch:
                put = partial(side.saver.put, places[at], checkpoint, metadata, fresh)
                places[at] = side.timed("put", put)
                found = side.timed("get_tuple", partial(side.saver.get_tuple, config(thread)))
                assert found.checkpoint["channel_values"] == checkpoint["channel_values"]
            for _ in range(STRETCH // 4):
                listed = side.timed("list(10)", partial(_ten, side.saver, thread))
            assert len(listed) == 10
            cold = side.fresh()
            assert cold.get_tuple(config("nobody's")) is None
            side.timed("get_tuple, cold", partial(cold.get_tuple, config(thread)))


def _ten(saver: Any, thread: str) -> list[Any]:
    return list(saver.list(config(thread), limit=10))


@contextmanager
def on_files() -> Iterator[tuple[Side, Side]]:
    """LMDB and SQLite, in files of their own."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        url, database = f"lmdb://{folder}/store", Path(folder, "sqlite.db")
        ours = stack.enter_context(HerdbookSaver(url, SPACE))

        def connect() -> SqliteSaver:
            connection = sqlite3.connect(database, check_same_thread=False)
            stack.callback(connection.close)
            saver = SqliteSaver(connection)
            saver.setup()
            connection.execute("PRAGMA synchronous = FULL")
            return saver

        peer = connect()
        (mode,) = peer.conn.execute("PRAGMA journal_mode").fetchone()
        (sync,) = peer.conn.execute("PRAGMA synchronous").fetchone()
        print(f"SQLite {sqlite3.sqlite_version}: journal_mode {mode}, synchronous {sync}")

        def size() -> int:
            peer.conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            return database.stat().st_size

        def fresh() -> HerdbookSaver:
            return stack.enter_context(HerdbookSaver(url, SPACE))

        data = Path(folder, "store", "data.mdb")
        yield (
            Side("lmdb", ours, fresh, lambda: data.stat().st_size),
            Side("sqlite saver", peer, connect, size),
        )


@contextmanager
def on_server() -> Iterator[tuple[Side, Side]]:
    """Both on one server, each in a database of its own."""
    with running_postgres() as url, ExitStack() as stack:
        schemas = f"herdbook_bench_{time.time_ns()}", f"peer_bench_{time.time_ns()}"
        joint = "&" if "?" in url else "?"
        mine, theirs = (
            f"{url}{joint}schema={schemas[0]}",
            f"{url}{joint}options=-csearch_path%3D{schemas[1]}",
        )
        server = stack.enter_context(psycopg.connect(url, autocommit=True))
        server.execute(f'CREATE SCHEMA "{schemas[1]}"')
        for schema in schemas:
            stack.callback(server.execute, f'DROP SCHEMA IF EXISTS "{schema}" CASCADE')
        ours = stack.enter_context(HerdbookSaver(mine, SPACE))

        def connect() -> PostgresSaver:
            saver = stack.enter_context(PostgresSaver.from_conn_string(theirs))
            saver.setup()
            return saver

        def size(schema: str) -> int:
            row = server.execute(
                "SELECT sum(pg_total_relation_size(oid)) FROM pg_class "
                "WHERE relkind = 'r' AND relnamespace = %s::regnamespace",
                [f'"{schema}"'],
            ).fetchone()
            assert row is not None
            return int(row[0] or 0)

        def fresh() -> HerdbookSaver:
            return stack.enter_context(HerdbookSaver(mine, SPACE))

        yield (
            Side("postgres", ours, fresh, lambda: size(schemas[0])),
            Side("postgres saver", connect(), connect, lambda: size(schemas[1])),
        )


def floors(number: int) -> None:
    """Print what it takes to make a step last at all: bytes of it, in the engine without us.

    LMDB gets what a step adds to a store of ours, SQLite what its saver writes at 10 KB.
    """
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        environment = stack.enter_context(lmdb.open(f"{folder}/raw", map_size=2**30))
        connection = sqlite3.connect(f"{folder}/raw.db")
        stack.callback(connection.close)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("CREATE TABLE kept (id TEXT PRIMARY KEY, data BLOB)")

        def put(data: bytes) -> None:
            with environment.begin(write=True) as transaction:
                transaction.put(os.urandom(8), data)

        def insert(data: bytes) -> None:
            connection.execute("INSERT INTO kept VALUES (?, ?)", (os.urandom(8).hex(), data))
            connection.commit()

        ours = Side("raw lmdb", None, list, int)
        peer = Side("raw sqlite", None, list, int)
        for _ in range(number // STRETCH + 1):
            for _ in range(STRETCH):
                ours.timed("put", partial(put, os.urandom(2_500)))
            for _ in range(STRETCH):
                peer.timed("put", partial(insert, os.urandom(10_000)))
        own, other = ours.median("put"), peer.median("put")
        print(
            f"{'floor':9} {'one row and a commit':21} {'put':16} {own * 1e6:8.0f} µs "
            f"{other * 1e6:9.0f} µs {other / own:7.2f} x",
            flush=True,
        )


def compare(opened: Callable[[], Any], state: str, number: int, missed: list[str]) -> None:
    """Print how both sides did with one state, on stores of their own."""
    shape, size = STATES[state]
    with opened() as (ours, peer):
        play([ours, peer], shape, size, number)
        for what in ("put", "get_tuple", "get_tuple, cold", "list(10)"):
            own, other = ours.median(what), peer.median(what)
            bar = BARS[ours.name] if "cold" not in what else 0
            verdict = "" if not bar else f"{bar:g}{'' if other / own >= bar else '  MISSED'}"
            if bar and other / own < bar:
                missed.append(f"{ours.name}, {state}: {what} {other / own:.2f}, bar {bar:g}")
            print(
                f"{ours.name:9} {state:21} {what:16} {own * 1e6:8.0f} µs {other * 1e6:9.0f} µs "
                f"{other / own:7.2f} x  {verdict}",
                flush=True,
            )
        own, other = ours.size(), peer.size()
        small = "" if size < 1_000_000 else f"< 5 MB{'' if own < ROOM else '  MISSED'}"
        if small.endswith("MISSED"):
            missed.append(f"{ours.name}, {state}: {own} bytes after {number} steps")
        print(
            f"{ours.name:9} {state:21} {f'{number} steps on disk':16} {own / 1e6:5.1f} MB "
            f"{other / 1e6:9.1f} MB {other / own:9.1f} x  {small}",
            flush=True,
        )


def main() -> int:
    """Print the table; say which bars were missed."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("states", nargs="*", default=list(STATES))
    arguments.add_argument("--steps", type=int, default=200)
    chosen = arguments.parse_args()
    missed: list[str] = []
    print(f"{'engine':9} {'state':21} {'what':16} {'ours':>11} {'peer':>12} {'faster':>9}  bar")
    floors(chosen.steps)
    for opened in (on_files, on_server):
        for state in chosen.states:
            compare(opened, state, chosen.steps, missed)
    for each in missed:
        print(f"missed: {each}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
