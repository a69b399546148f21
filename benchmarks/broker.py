"""150 processes on a DuckDB file, paced to 60 operations per second together, direct or brokered.

Every operation has its time in a common schedule, and its latency counts from that time, so that
waiting for others counts too. A third of the operations adds a message, a third claims and
completes a task in two transactions, and a third lists what is ready. Run with `make bench`.

The last part kills the broker (`kill -9`) under the load of 20 processes: how long until the first
of them has done its next operation without it, and until the last has.
"""

import argparse
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from multiprocessing.synchronize import Barrier, Event
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.machine import StolenTime
from herdbook.adapters import open_store
from herdbook.adapters.duckdb.broker.start import start_broker
from herdbook.domain.agents.model import Agent
from herdbook.domain.conversation import Message
from herdbook.domain.plan.model import Task
from herdbook.ports.engine.store import Store, TryAgain
from herdbook.ports.unit_of_work.run import read, run
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.ports.world.halts import NO_HALTS
from herdbook.services.plan import claims

SPACE = "work/bench"
BAR = 0.1
"""The bar for the 99th percentile through a broker, in seconds."""
DEATH_BAR = 2.0
"""The bar for the last client to go on after the broker's death, in seconds."""
SURVIVORS = 20

PROCESSES: Any = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(
    ["herdbook.adapters.duckdb.broker.start", "herdbook.services.plan.claims"]
)


def add_message(uow: UnitOfWork, text: str) -> object:
    """One message, as agents write them."""
    return uow.messages.add(
        Message(
            sender_type="agent",
            sender_id="agt_bench",
            recipient_type="user",
            recipient_id="usr_bench",
            content=text,
        )
    )


def operate(store: Store, agent: str, number: int) -> None:
    """The operation with this number in the schedule."""
    match number % 3:
        case 0:
            run(store, SPACE, add_message, f"message {number}", operation_id=f"bench-{number}")
        case 1:
            taken = run(store, SPACE, claims.claim, agent, halts=NO_HALTS)
            if taken is not None:
                run(store, SPACE, claims.complete, taken.task.id, taken.fence)
        case _:
            read(store, SPACE, claims.ready)


def work(url: str, agent: str, due: dict[int, float], ready: Barrier, out: Any) -> None:
    """Do every operation of one process at its time, and report how long each took."""
    with open_store(url, patience=60.0) as store:
        for number in range(3):  # imports what is imported late
            operate(store, agent, -1_000 * (min(due) + 1) - number)
        ready.wait()
        begun = time.monotonic() + 0.5
        latencies = []
        for number, after in due.items():
            time.sleep(max(0.0, begun + after - time.monotonic()))
            operate(store, agent, number)
            latencies.append(time.monotonic() - begun - after)
    out.put(latencies)


def serve(url: str, ready: Event, end: Event) -> None:
    """Be the broker until the event."""
    with open_store(url) as store, start_broker(store):
        ready.set()
        end.wait()


def measure(url: str, *, processes: int, rate: float, seconds: float) -> list[float]:
    """The latencies of all operations."""
    total = int(rate * seconds)
    with open_store(url) as store:
        agents = run(store, SPACE, _fill, processes, total)
    out, ready = PROCESSES.Queue(), PROCESSES.Barrier(processes)
    workers = [
        PROCESSES.Process(
            target=work,
            args=(
                url,
                agent,
                {number: number / rate for number in range(at, total, processes)},
                ready,
                out,
            ),
        )
        for at, agent in enumerate(agents)
    ]
    for each in workers:
        each.start()
    latencies = [value for _ in workers for value in out.get()]
    for each in workers:
        each.join()
    return latencies


def _fill(uow: UnitOfWork, processes: int, total: int) -> list[str]:
    uow.tasks.add_all([Task(name=f"task {number}") for number in range(total + processes)])
    return [uow.agents.add(Agent(name=f"agent {number}")).id for number in range(processes)]


def brokered(url: str, work_there: Callable[[], list[float]]) -> list[float]:
    """Measure while a broker in a process of its own serves the file."""
    with open_store(url):
        pass
    ready, end = PROCESSES.Event(), PROCESSES.Event()
    broker = PROCESSES.Process(target=serve, args=(url, ready, end))
    broker.start()
    ready.wait()
    try:
        return work_there()
    finally:
        end.set()
        broker.join()


class Signals(NamedTuple):
    """How a benchmark and its processes tell one another of things."""

    ready: Barrier
    end: Event
    out: Any


def outlive(url: str, agent: str, first: int, signals: Signals) -> None:
    """Operate all the time, paced, also once after the end, and report when each was done."""
    done: list[float] = []
    with open_store(url, patience=60.0) as store:
        operate(store, agent, first)
        signals.ready.wait()
        for number in count(first + 3 * SURVIVORS, 3 * SURVIVORS):
            is_last, begun = signals.end.is_set(), time.monotonic()
            with suppress(TryAgain):  # an operation without an id: whoever asked asks again
                operate(store, agent, number)
                done.append(time.monotonic())
                if is_last:
                    break
            time.sleep(max(0.0, begun + SURVIVORS / 60 - time.monotonic()))
    signals.out.put(done)


def measure_death(url: str) -> list[float]:
    """The seconds after which each client had done its next operation without the broker."""
    with open_store(url) as store:
        agents = run(store, SPACE, _fill, SURVIVORS, 2_000)
    serving, never = PROCESSES.Event(), PROCESSES.Event()
    broker = PROCESSES.Process(target=serve, args=(url, serving, never))
    broker.start()
    serving.wait()
    signals = Signals(PROCESSES.Barrier(SURVIVORS + 1), PROCESSES.Event(), PROCESSES.Queue())
    workers = [
        PROCESSES.Process(target=outlive, args=(url, agent, number, signals))
        for number, agent in enumerate(agents)
    ]
    for each in workers:
        each.start()
    signals.ready.wait()
    time.sleep(3.0)
    killed = time.monotonic()
    broker.kill()
    broker.join()
    time.sleep(6.0)
    signals.end.set()
    reports = [signals.out.get() for _ in workers]
    for each in workers:
        each.join()
    return sorted(min(each for each in done if each > killed) - killed for done in reports)


def report(way: str, latencies: list[float], stolen: StolenTime) -> float:
    """Print a line; the 99th percentile."""
    cuts = statistics.quantiles(latencies, n=100)
    print(
        f"{way:9} {len(latencies):6} operations   p50 {cuts[49] * 1e3:8.1f} ms   "
        f"p99 {cuts[98] * 1e3:8.1f} ms   max {max(latencies) * 1e3:8.1f} ms   "
        f"stolen {stolen.share():.0%}",
        flush=True,
    )
    return cuts[98]


def main() -> None:
    """Measure both ways and say whether the bar was met."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="fewer operations")
    parser.add_argument("--processes", type=int, default=150)
    parser.add_argument("--rate", type=float, default=60.0)
    parser.add_argument("--only", choices=("direct", "brokered", "death"))
    given = parser.parse_args()
    options = {"processes": given.processes, "rate": given.rate}
    seconds = 5.0 if given.quick else 20.0
    begun = time.perf_counter()
    os.fsync(os.open(tempfile.mkstemp()[1], os.O_RDWR))
    print(
        f"{given.processes} processes, {given.rate:g}/s together; one fsync "
        f"{(time.perf_counter() - begun) * 1e3:.1f} ms, load {os.getloadavg()[0]:.1f}"
    )
    p99, waits = 0.0, list[float]()
    with tempfile.TemporaryDirectory() as folder:
        if given.only in (None, "direct"):
            url = f"duckdb://{Path(folder) / 'direct.duckdb'}"
            stolen = StolenTime()
            report("direct", measure(url, seconds=seconds, **options), stolen)
        if given.only in (None, "brokered"):
            url = f"duckdb://{Path(folder) / 'brokered.duckdb'}"
            stolen = StolenTime()
            found = brokered(url, lambda: measure(url, seconds=seconds, **options))
            p99 = report("brokered", found, stolen)
        if given.only in (None, "death"):
            stolen = StolenTime()
            waits = measure_death(f"duckdb://{Path(folder) / 'killed.duckdb'}")
            print(
                f"killed    {len(waits):6} clients      first {waits[0]:6.2f} s   "
                f"median {statistics.median(waits):6.2f} s   last {waits[-1]:6.2f} s   "
                f"stolen {stolen.share():.0%}",
                flush=True,
            )
    missed = []
    if p99 > BAR:
        missed.append(f"p99 {p99 * 1e3:.0f} ms, bar {BAR * 1e3:.0f} ms")
    if waits and waits[-1] > DEATH_BAR:
        missed.append(f"last client after {waits[-1]:.1f} s, bar {DEATH_BAR:g} s")
    if missed:
        print(f"MISSED: {'; '.join(missed)}")
        sys.exit(1)


if __name__ == "__main__":
    main()
