"""How long a change takes to those who wait for it: from the begin of the commit until it is read.

Per engine, with 1, 20 and 150 listening processes; each round one writer commits and every listener
reads the journal after its wake-up. The commit begins when the use case has returned; `call` is the
whole call of the writer, which opens a file of DuckDB first, and `from call` the 99th percentile
from its begin on. Listeners look without a ring once an hour only, so that what
is measured are rings, and a lost one would stop the benchmark. Run with `make bench`.

On a machine whose host gives its processors to others as well ("stolen"), compare the processor
time: what the writer takes for a commit with its ring, and what a listener takes for an entry.
"""

import argparse
import multiprocessing
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.machine import StolenTime, calibrate
from herdbook.adapters import open_store
from herdbook.domain.plan.model import Task
from herdbook.ports.unit_of_work.run import run
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services.journal.feed import Feed
from tests.postgres_server import private_postgres

SPACE = "work/live"
HOUR = 3_600.0
BARS = {1: 0.02, 20: 0.02, 150: 0.1}
"""The bar for the 99th percentile by the number of listeners, in seconds."""
ENGINES = ("lmdb", "duckdb", "postgres")

PROCESSES: Any = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(
    [
        "herdbook.adapters.lmdb.store",
        "herdbook.adapters.duckdb.store",
        "herdbook.adapters.postgres.store",
        "herdbook.adapters.wakeups.sockets",
        "herdbook.services.journal.feed",
    ]
)


def add_task(uow: UnitOfWork, number: int) -> float:
    """Add one task, which is one entry of the journal; the time at which its commit begins."""
    uow.tasks.add(Task(name=f"task {number}"))
    return time.monotonic()


def listen(url: str, rounds: int, ready: Barrier, out: Any) -> None:
    """Read every entry when it is rung; report at what time each was read, and the CPU time."""
    times: dict[int, float] = {}
    with open_store(url, patience=60.0) as store, Feed(store, SPACE, 0, look=HOUR) as feed:
        feed.fileno()
        feed.take()
        ready.wait()
        used = time.process_time()
        while len(times) < rounds:
            feed.wait()
            while page := feed.take():
                now = time.monotonic()
                times |= {entry.seq: now for entry in page}
        used = time.process_time() - used
        # One that ended at once would take the processor from those that still read the last entry.
        ready.wait()
    out.put((times, used))


class Figures(NamedTuple):
    """All in seconds: until each entry was read, from the commit and from the call on; the rest."""

    from_commit: list[float]
    from_call: list[float]
    calls: list[float]
    writer_cpu: float
    listener_cpu: float


def measure(url: str, listeners: int, rounds: int, pause: float) -> Figures:
    """Commit that often, each time when all listeners wait."""
    ready, out = PROCESSES.Barrier(listeners + 1), PROCESSES.SimpleQueue()
    called: dict[int, float] = {}
    committed: dict[int, float] = {}
    calls: list[float] = []
    with open_store(url, create=True, patience=60.0) as store:
        run(store, SPACE, add_task, 0)
        children = [
            PROCESSES.Process(target=listen, args=(url, rounds, ready, out), daemon=True)
            for _ in range(listeners)
        ]
        for child in children:
            child.start()
        ready.wait()
        time.sleep(0.5)
        used = time.process_time()
        for number in range(rounds):
            called[number + 2] = time.monotonic()
            committed[number + 2] = run(store, SPACE, add_task, number)
            calls.append(time.monotonic() - called[number + 2])
            time.sleep(pause)
        used = time.process_time() - used
        ready.wait()
        reports = [out.get() for _ in children]
    for child in children:
        child.join()
    return Figures(
        sorted(at - committed[seq] for times, _ in reports for seq, at in times.items()),
        sorted(at - called[seq] for times, _ in reports for seq, at in times.items()),
        calls,
        used / rounds,
        sum(each for _, each in reports) / rounds / listeners,
    )


@contextmanager
def new_url(engine: str) -> Iterator[str]:
    """The URL of a place for a new store."""
    with tempfile.TemporaryDirectory() as folder:
        if engine != "postgres":
            name = "store.duckdb" if engine == "duckdb" else "store"
            yield f"{engine}://{Path(folder, name)}"
            return
        with private_postgres() as server:
            yield server.url


def main() -> int:
    """Print a table; 1 if a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", choices=ENGINES, action="append")
    parser.add_argument("--listeners", type=int, choices=BARS, action="append")
    parser.add_argument("--rounds", type=int, default=100)
    given = parser.parse_args()
    missed = 0
    with tempfile.TemporaryDirectory() as folder:
        print(calibrate(Path(folder)))
    print(
        "commit begins → read, ms    listeners    call     p50     p99     max     bar from call"
        "  writer's CPU  a listener's  stolen"
    )
    for engine in given.engine or ENGINES:
        for listeners in given.listeners or BARS:
            with new_url(engine) as url:
                pause = 0.05 + 0.002 * listeners
                stolen = StolenTime()
                found, from_call, calls, *cpu = measure(url, listeners, given.rounds, pause)
            last = int(len(found) * 0.99) - 1
            p99, bar = found[last], BARS[listeners]
            missed += p99 > bar
            figures = statistics.median(calls), statistics.median(found), p99, found[-1], bar
            shown = "".join(f"{each * 1_000:8.1f}" for each in figures)
            shown += f"{from_call[last] * 1_000:10.1f}"
            shown += "".join(f"{each * 1_000:14.2f}" for each in cpu)
            print(f"{engine:27} {listeners:9} {shown}{stolen.share():8.0%}", flush=True)
    return min(missed, 1)


if __name__ == "__main__":
    sys.exit(main())
