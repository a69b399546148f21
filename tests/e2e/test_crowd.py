"""Many workflows at once, over ten repositories with three worktrees each: nothing is lost."""

import statistics
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from fcntl import LOCK_EX, LOCK_UN, flock
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import pytest

from herdbook.domain.location.areas import Area
from herdbook.domain.plan.model import TaskStatus
from herdbook.ports.engine.query import find
from herdbook.ports.repositories.base import PAGE
from herdbook.ports.unit_of_work.run import read
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services.stores.store_check import check
from tests.e2e.conftest import Person

WORKER = "tests.e2e.worker"
REPOSITORIES, WORKTREES = 10, 3
ENGINES = ("lmdb", "duckdb", "postgres")
Told = list[dict[str, list[Any]]]


@pytest.fixture
def places(person: Person, tmp_path: Path) -> list[Path]:
    """The worktrees of ten repositories, three each, the main one included."""
    found = []
    for number in range(REPOSITORIES):
        app = person.repository(tmp_path / f"app{number}", origin=f"https://example.com/{number}")
        found.append(app)
        for name in range(WORKTREES - 1):
            path = tmp_path / f"app{number}-{name}"
            person.git(app, "worktree", "add", "--quiet", "-b", f"b{name}", str(path))
            found.append(path)
    return found


def at_once(person: Person, gate: Path, places: list[Path], rounds: int) -> Told:
    """Start a worker in each place, let all go at the same moment; what each told."""
    gate.mkdir()
    with ThreadPoolExecutor(len(places)) as threads, (gate / "lock").open("w") as lock:
        flock(lock, LOCK_EX)
        running = [
            threads.submit(person.runs_module, WORKER, place, str(gate), str(rounds))
            for place in places
        ]
        while len(list(gate.glob("ready-*"))) < len(places):
            if any(each.done() for each in running):
                break  # its result says why it was not ready
            time.sleep(0.01)
        flock(lock, LOCK_UN)
        return [each.result() for each in running]


def tasks_of(uow: UnitOfWork) -> list[Any]:
    """All tasks of a space."""
    return list(uow.tasks.select_all(find(uow.tasks.kind, limit=PAGE)))


def crowd(person: Person, places: list[Path], processes: int, rounds: int) -> Told:
    """Let that many processes work, and check that every book is right."""
    gate = places[0].parent / "gate"
    told = at_once(person, gate, list(islice(cycle(places), processes)), rounds)
    assert len(told) == processes
    completed = Counter(task for each in told for task in each["completed"])
    added = Counter(task for each in told for task in each["added"])
    assert sum(added.values()) == processes * rounds
    assert set(completed.values()) == {1}
    assert completed == added
    kept = []
    for app in places[::WORKTREES]:
        here = person.at(app)
        with here.open(Area.WORK) as store:
            space = here.workspace.space(Area.WORK)
            tasks = read(store, space, tasks_of)
            assert {task.status for task in tasks} == {TaskStatus.COMPLETED}
            kept += [task.id for task in tasks]
            entries = read(store, space, lambda uow: list(uow.journal.all_entries()))
            assert [entry.seq for entry in entries] == list(range(1, len(entries) + 1))
            assert check(store, [space]) == []
            rows = read(store, space, lambda uow: uow.worktrees.page())
            assert len(rows) == WORKTREES
    assert Counter(kept) == added
    return told


@pytest.mark.parametrize("engine", ENGINES)
def test_thirty_workflows_at_once(
    person: Person, places: list[Path], postgres_url: str, engine: str
) -> None:
    """Every process ends well, no task is lost or done twice, every journal is whole."""
    person.chooses(postgres_url if engine == "postgres" else engine, "patience = 600")
    crowd(person, places, processes=30, rounds=2)


@pytest.mark.soak
@pytest.mark.parametrize("engine", ENGINES)
def test_a_hundred_and_fifty_workflows_at_once(
    person: Person,
    places: list[Path],
    postgres_url: str,
    engine: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The same with 150 processes; throughput and latency are printed."""
    person.chooses(postgres_url if engine == "postgres" else engine, "patience = 600")
    rounds = 5
    start = time.perf_counter()
    told = crowd(person, places, processes=150, rounds=rounds)
    took = time.perf_counter() - start
    seconds = sorted(second for each in told for second in each["seconds"])
    p99 = seconds[int(len(seconds) * 0.99)]
    with capsys.disabled():
        sys.stdout.write(
            f"\n{engine}: {len(seconds)} workflows (add, claim, complete) in {took:.0f} s with "
            f"start-up, p50 {statistics.median(seconds) * 1_000:.0f} ms, p99 {p99 * 1_000:.0f} ms\n"
        )
