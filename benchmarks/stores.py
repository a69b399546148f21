"""Our stores against their raw engines, as ratios in one run.

Every figure is taken from both sides in turn, so that a busy moment of the machine hits both. The
raw side does the same work with ready-made values: the same records, index entries and journal
entries, in a transaction as durable as ours. Run with `make bench`; `--quick` takes smaller tables.
"""

import argparse
import itertools
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from attrs import evolve, frozen

from benchmarks.raw import Raw, RawDuckDB, RawLmdb, RawPostgres
from herdbook.adapters import open_store
from herdbook.adapters.system.ids import random_id
from herdbook.domain.agents.model import Agent
from herdbook.domain.conversation import Message
from herdbook.domain.plan.model import ExecutionMode, Initiative, Phase, Task
from herdbook.ports.engine.dictionary import JOURNAL, MESSAGES
from herdbook.ports.engine.query import find
from herdbook.ports.engine.store import Store
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork, unit_of_work
from herdbook.ports.world.halts import NO_HALTS
from herdbook.services.plan.claims import claim, ready
from tests.postgres_server import running_postgres

SPACE = "work/bench"
STRETCH = 10
BARS: dict[str, dict[str, float]] = {
    "add (one durable transaction)": {"lmdb": 1.5, "postgres": 1.5, "duckdb": 1.5},
    "add (batch of 1,000)": {"lmdb": 4, "postgres": 2, "duckdb": 2},
    "get": {"lmdb": 5, "postgres": 1.5, "duckdb": 1.5},
    "find 20, large / small": {"lmdb": 1.5, "postgres": 1.5, "duckdb": 3},
    "ready(20), large / small": {"lmdb": 1.5, "postgres": 1.5, "duckdb": 3},
    "claim, large / small": {"lmdb": 1.5, "postgres": 1.5, "duckdb": 3},
}


@contextmanager
def begin(store: Store, space: str = SPACE, *, write: bool = True) -> Iterator[UnitOfWork]:
    """A unit of work in a space of the benchmark."""
    with unit_of_work(store, space, ids=random_id, write=write) as uow:
        yield uow


def message(number: int) -> Message:
    """A message as agents write them."""
    return Message(
        sender_type="agent",
        sender_id=f"agt_{number % 100}",
        recipient_type="user",
        recipient_id=f"usr_{number // 20:08}",
        content="The migration is written and its tests pass; shall I open the pull request?",
        requires_response=number % 3 == 0,
    )


def seconds(work: Callable[[], object]) -> float:
    """How long a piece of work took."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def in_turn(rounds: int, *works: Callable[[int], object]) -> list[float]:
    """The median time of each piece of work, done in turn so that noise hits all alike.

    Each has a few goes at a stretch, as one busy process has: DuckDB's file stays attached then.
    """
    times: list[list[float]] = [[] for _ in works]
    for stretch in batched(range(rounds), STRETCH):
        for work, taken in zip(works, times, strict=True):
            taken += [seconds(partial(work, number)) for number in stretch]
    return [statistics.median(each) for each in times]


def batched(numbers: range, size: int) -> Iterator[range]:
    """The numbers in stretches of this size."""
    return (numbers[start : start + size] for start in range(0, len(numbers), size))


class Report:
    """The table, printed as it grows."""

    def __init__(self) -> None:
        self.missed: list[str] = []
        header = ("engine", "what", "ours", "compared with", "ratio", "bar")
        print(f"{header[0]:9} {header[1]:30} {header[2]:>11} {header[3]:>13} {header[4]:>7}  bar")

    def line(self, engine: str, what: str, ours: float, other: float) -> None:
        """One row of the table."""
        ratio = ours / other
        bar = BARS.get(what, {}).get(engine)
        verdict = "" if bar is None else f"{bar:g}{'' if ratio <= bar else '  MISSED'}"
        if bar is not None and ratio > bar:
            self.missed.append(f"{engine}: {what} {ratio:.2f}, bar {bar:g}")
        print(
            f"{engine:9} {what:30} {ours * 1e6:8.0f} µs {other * 1e6:10.0f} µs {ratio:7.2f}  "
            f"{verdict}",
            flush=True,
        )


RAWS: dict[str, Callable[[str], Raw]] = {
    "lmdb": RawLmdb,
    "postgres": RawPostgres,
    "duckdb": RawDuckDB,
}


@frozen
class Scene:
    """A piece of work, and what has to be there before it; the same in every space."""

    name: str
    rounds: int
    work: Callable[[UnitOfWork], object]
    set_up: Callable[[UnitOfWork], object]

    def prepare(self, store: Store, space: str) -> None:
        """Set up a space, with the same ids as every other."""
        numbers = itertools.count()
        with unit_of_work(store, space, ids=lambda: f"{next(numbers):020}") as uow:
            self.set_up(uow)
            uow.commit()

    def play(self, store: Store, space: str) -> None:
        """Do the work in a transaction of its own."""
        with begin(store, space) as uow:
            self.work(uow)
            uow.commit()


def _plant(uow: UnitOfWork) -> None:
    initiative = uow.initiatives.add(Initiative(id="ini_planted", name="an initiative"))
    phase = uow.phases.add(Phase(initiative_id=initiative.id, name="a phase"))
    tasks = uow.tasks.add_all([Task(phase_id=phase.id, name=f"task {n}") for n in range(20)])
    pairs = zip(tasks[1:], tasks, strict=False)
    uow.tasks.add_dependencies((one.id, other.id) for one, other in pairs)


def _first_message(uow: UnitOfWork) -> None:
    uow.messages.add(evolve(message(0), id="msg_first"))


BATCH = [message(number) for number in range(1_000)]
SCENES = (
    Scene("add (one durable transaction)", 150, lambda u: u.messages.add(BATCH[7]), _first_message),
    Scene("add (batch of 1,000)", 9, lambda u: u.messages.add_all(BATCH), _first_message),
    Scene("save", 60, lambda u: u.messages.save(u.messages.get("msg_first")), _first_message),
    Scene(
        "remove with cascade (41 rows)", 20, lambda u: u.initiatives.remove("ini_planted"), _plant
    ),
)


def against_raw(engine: str, place: Callable[[str], str], report: Report, *, rows: int) -> None:
    """Everything that has a raw counterpart."""
    raw = RAWS[engine](place("raw"))
    with open_store(place("ours")) as store:
        _fill_messages(store, rows)
        with open_store(place("raw")) as other:
            _fill_messages(other, rows)
        for scene in SCENES:
            report.line(engine, scene.name, *_compare(scene, store, place, raw))
        raw.begin()
        try:
            _compare_reads(engine, store, raw, report, rows)
        finally:
            raw.end()


def _compare(
    scene: Scene, store: Store, place: Callable[[str], str], raw: Raw
) -> tuple[float, float]:
    number = SCENES.index(scene)
    spaces = [f"work/scene-{number}-{each}" for each in range(scene.rounds)]
    for space in spaces:
        scene.prepare(store, space)
    with open_store(place("raw")) as other:
        for space in spaces:
            scene.prepare(other, space)
    rehearsal = f"work/scene-{number}-rehearsal"
    scene.prepare(store, rehearsal)
    raw.learn(store, rehearsal, lambda: scene.play(store, rehearsal))
    raw.begin()
    try:
        ours, bare = in_turn(
            scene.rounds,
            lambda n: scene.play(store, spaces[n]),
            lambda n: raw.repeat(spaces[n]),
        )
    finally:
        raw.end()
    return ours, bare


def _compare_reads(engine: str, store: Store, raw: Raw, report: Report, rows: int) -> None:
    with begin(store, write=False) as uow:
        keys = [row.id for row in uow.select(find(MESSAGES, limit=1_000))]
    recipients = [f"usr_{number * 7 % (rows // 20):08}" for number in range(200)]
    with raw.reading(SPACE) as look:
        there = [_id_of(row) for row in look.since(0)]
    with begin(store, write=False) as uow, raw.reading(SPACE) as look:
        ours, bare = in_turn(
            1_000, lambda n: uow.messages.get(keys[n]), lambda n: look.get(there[n])
        )
        report.line(engine, "get", ours, bare)
        ours, bare = in_turn(
            200,
            lambda n: uow.messages.pending_for_agent(recipients[n]),
            lambda n: look.find(recipients[n]),
        )
        report.line(engine, "find 20", ours, bare)
        ours, bare = in_turn(20, lambda n: uow.journal.since(n * 50), lambda n: look.since(n * 50))
        report.line(engine, "journal.since (1,000 entries)", ours, bare)


def _id_of(entry: Any) -> str:
    return str(
        entry["key"] if isinstance(entry, dict) else entry[list(JOURNAL.columns).index("key")]
    )


def _fill_messages(store: Store, rows: int) -> None:
    for start in range(0, rows, 5_000):
        with begin(store) as uow:
            uow.messages.add_all([message(n) for n in range(start, min(start + 5_000, rows))])
            uow.commit()


def as_it_grows(engine: str, small: Store, large: Store, report: Report, sizes: Any) -> None:
    """What must not slow down as the plan grows."""
    for store, rows in zip((small, large), sizes, strict=True):
        _fill_messages(store, rows)
        _fill_plan(store, rows)
    recipients = [
        [f"usr_{number * 7 % (rows // 20):08}" for number in range(200)] for rows in sizes
    ]
    with begin(small, write=False) as one, begin(large, write=False) as other:
        few, many = in_turn(
            100,
            lambda n: one.messages.pending_for_agent(recipients[0][n]),
            lambda n: other.messages.pending_for_agent(recipients[1][n]),
        )
        report.line(engine, "find 20, large / small", many, few)

    def ask(store: Store) -> Callable[[int], object]:
        def work(_: int) -> None:
            with begin(store, write=False) as uow:
                assert len(ready(uow, 20)) == 20

        return work

    def take(store: Store) -> Callable[[int], object]:
        with begin(store) as uow:
            agent = uow.agents.add(Agent(name="claimer"))
            uow.commit()

        def work(_: int) -> None:
            with begin(store) as uow:
                assert claim(uow, agent.id, halts=NO_HALTS) is not None
                uow.commit()

        return work

    few, many = in_turn(60, ask(small), ask(large))
    report.line(engine, "ready(20), large / small", many, few)
    few, many = in_turn(60, take(small), take(large))
    report.line(engine, "claim, large / small", many, few)


def _fill_plan(store: Store, tasks: int) -> None:
    """A plan in which a tenth of the tasks is ready and the others wait for two each."""
    with begin(store) as uow:
        initiative = uow.initiatives.add(
            Initiative(name="large", execution_mode=ExecutionMode.YOLO)
        )
        phase = uow.phases.add(Phase(initiative_id=initiative.id, name="all of it"))
        uow.commit()
    ids: list[str] = []
    free = tasks // 10
    for start in range(0, tasks, 5_000):
        with begin(store) as uow:
            added = uow.tasks.add_all(
                [
                    Task(phase_id=phase.id, name=f"task {number}", order=number)
                    for number in range(start, min(start + 5_000, tasks))
                ]
            )
            ids += [task.id for task in added]
            uow.tasks.add_dependencies(
                (ids[number], ids[number * factor // 10])
                for number in range(start, len(ids))
                if number >= free
                for factor in (3, 7)
            )
            uow.commit()


@contextmanager
def places(engine: str) -> Iterator[Callable[[str], str]]:
    """URLs for the stores of one engine."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        if engine == "postgres":
            url = stack.enter_context(running_postgres())
            yield lambda name: f"{url}{'&' if '?' in url else '?'}schema=bench_{name}"
        elif engine == "lmdb":
            yield lambda name: f"lmdb://{Path(folder) / name}"
        else:
            yield lambda name: f"duckdb://{Path(folder) / name}.duckdb"


def main() -> int:
    """Print the table; say which bars were missed."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("engines", nargs="*", default=list(RAWS))
    arguments.add_argument("--quick", action="store_true", help="tables of a tenth of the size")
    chosen = arguments.parse_args()
    sizes = (1_000, 10_000 if chosen.quick else 100_000)
    report = Report()
    for engine in chosen.engines:
        with places(engine) as place:
            against_raw(engine, place, report, rows=sizes[1])
            with open_store(place("small")) as small, open_store(place("large")) as large:
                as_it_grows(engine, small, large, report, sizes)
    for each in report.missed:
        print(f"missed: {each}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
