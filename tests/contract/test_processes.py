"""Many processes at once on one store: nothing lost, nothing double, everything in order.

In memory, which no other process can reach, the same laws hold for as many threads.
"""

import itertools
import os
import random
import re
import signal
import time
from collections import Counter, deque
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import pytest
from attrs import frozen

from herdbook.adapters import open_store
from herdbook.domain.agents.model import Agent
from herdbook.domain.journal import JournalEntry, Op
from herdbook.domain.plan.model import Task, TaskDependency, TaskStatus
from herdbook.domain.record.model import Account
from herdbook.ports.engine.codec import encode_row
from herdbook.ports.engine.dictionary import TASK_DEPENDENCIES, TASKS
from herdbook.ports.engine.kinds import Kind
from herdbook.ports.unit_of_work.projections import find_differences
from herdbook.ports.unit_of_work.run import read, run
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork, unit_of_work
from tests.contract import workers
from tests.contract.children import (
    Child,
    Died,
    Place,
    apart,
    at_once,
    barrier,
    begun,
    event,
    opened,
)
from tests.contract.conftest import SHARED
from tests.contract.workers import COUNTER, UNITS

MANY = 16
KILLS = 50
SPACE = "work/crowd"

R = TypeVar("R")

between_processes = pytest.mark.parametrize("engine", SHARED, indirect=True)


def placed(engine: str, new_url: Callable[[str], str]) -> Place:
    """A new store of the engine, as workers come to it."""
    url = new_url(engine)
    return url if engine in SHARED else open_store(url)


def asked(place: Place, question: Callable[..., R], space: str = SPACE) -> R:
    """What a store answers that others have written."""
    with opened(place) as store:
        return read(store, space, question)


def prepared(place: Place, use_case: Callable[..., R], space: str = SPACE) -> R:
    """What a store is given before others come."""
    with opened(place) as store:
        return run(store, space, use_case)


@pytest.fixture
def place(engine: str, new_url: Callable[[str], str]) -> Place:
    """A new store of the engine, as workers come to it."""
    return placed(engine, new_url)


@frozen
class Found:
    """What is in a space."""

    tasks: list[Task]
    edges: list[TaskDependency]
    journal: list[JournalEntry]
    last: int
    differences: list[Any]


def everything(uow: UnitOfWork) -> Found:
    """All of a space that a crowd has written."""
    return Found(*workers.everything(uow), uow.journal.last(), find_differences(uow))


def rebuilt(kind: Kind[Any], journal: list[JournalEntry]) -> dict[str, Any]:
    """The rows of a kind as the journal alone tells them."""
    rows: dict[str, Any] = {}
    for entry in journal:
        if entry.entity == kind.name and entry.op is Op.REMOVE:
            del rows[entry.key]
        elif entry.entity == kind.name:
            rows[entry.key] = {**rows.get(entry.key, {}), **(entry.after or {})}
    return {
        key: {name: value for name, value in row.items() if value is not None}
        for key, row in rows.items()
    }


@frozen
class Crowd:
    """What many writers and one follower said, and what is there."""

    writers: int
    added: list[workers.Ids]
    looks: list[list[JournalEntry]]
    found: Found


def crowd_of(place: Place, writers: int) -> Crowd:
    """Let that many write at once while one follows the journal."""
    prepared(place, workers.lay_out)
    start, followed, ended = barrier(place, writers + 1), event(place), event(place)
    follower = begun(place, workers.follow, SPACE, start, followed, ended)
    jobs = [(SPACE, number, start, followed) for number in range(writers)]
    added = list(itertools.chain(*at_once(place, workers.write, jobs)))
    ended.set()
    return Crowd(writers, added, follower(), asked(place, everything))


@pytest.fixture(scope="module")
def crowd(engine: str, new_url: Callable[[str], str]) -> Crowd:
    """Sixteen writers and a follower, on each engine once for all laws."""
    return crowd_of(placed(engine, new_url), MANY)


def test_nothing_is_lost_and_nothing_is_double(crowd: Crowd) -> None:
    """The rows that are there are the acknowledged ones, each once."""
    added = list(itertools.chain(*crowd.added))
    assert len(added) == 3 * UNITS * MANY
    assert sorted(task.id for task in crowd.found.tasks) == sorted([COUNTER, *added])
    chains = [pair for ids in crowd.added for pair in itertools.pairwise(ids)]
    edges = [(edge.depends_on_task_id, edge.task_id) for edge in crowd.found.edges]
    assert sorted(edges) == sorted(chains)


def test_what_all_count_in_one_row_is_counted(crowd: Crowd) -> None:
    """Reading, adding one and saving loses no count, however many do it at once."""
    (counter,) = (task for task in crowd.found.tasks if task.id == COUNTER)
    assert (counter.order, counter.version) == (UNITS * MANY, 1 + UNITS * MANY)


def test_the_journal_has_no_gap(crowd: Crowd) -> None:
    """Its numbers are 1, 2, 3 to the last, and the head of the space knows the last."""
    numbers = [entry.seq for entry in crowd.found.journal]
    assert numbers == list(range(1, crowd.found.last + 1))


@pytest.mark.parametrize("kind", [TASKS, TASK_DEPENDENCIES], ids=lambda kind: kind.name)
def test_the_journal_is_complete(crowd: Crowd, kind: Kind[Any]) -> None:
    """Who replays it gets exactly the rows that are there."""
    rows = crowd.found.tasks if kind is TASKS else crowd.found.edges
    assert rebuilt(kind, crowd.found.journal) == {row.id: encode_row(kind, row) for row in rows}


def test_the_journal_is_in_order(crowd: Crowd) -> None:
    """Its clock only goes forward, and no transaction has another one's entry in its midst."""
    stamps = [entry.at for entry in crowd.found.journal]
    assert all(earlier < later for earlier, later in itertools.pairwise(stamps))
    runs = [tx for tx, _ in itertools.groupby(entry.tx for entry in crowd.found.journal)]
    assert len(runs) == len(set(runs)) == 1 + 2 * UNITS * MANY


def test_who_follows_the_journal_misses_nothing(crowd: Crowd) -> None:
    """Look after look while others write gives every entry once, in order, as it stays."""
    assert len(crowd.looks) > 1
    assert list(itertools.chain(*crowd.looks)) == crowd.found.journal


def test_derived_rows_follow_all_that_was_written(crowd: Crowd) -> None:
    """What is ready and what waits is what the tasks and their dependencies say."""
    assert crowd.found.differences == []


@pytest.mark.soak
def test_a_hundred_and_fifty_processes_lose_nothing(
    engine: str, new_url: Callable[[str], str]
) -> None:
    """The laws of the crowd hold for a crowd that no machine has cores for."""
    crowd = crowd_of(placed(engine, new_url), 150)
    added = list(itertools.chain(*crowd.added))
    assert sorted(task.id for task in crowd.found.tasks) == sorted([COUNTER, *added])
    assert [entry.seq for entry in crowd.found.journal] == list(range(1, crowd.found.last + 1))
    assert list(itertools.chain(*crowd.looks)) == crowd.found.journal
    assert crowd.found.differences == []


def test_many_that_open_a_new_store_open_one(place: Place) -> None:
    """Sixteen that come first at the same time make one store, and each can write at once."""
    start = barrier(place, MANY)
    uuids = at_once(place, workers.found, [(SPACE, start, number) for number in range(MANY)])
    assert len(set(uuids)) == 1
    tasks = asked(place, lambda uow: uow.tasks.by_status(TaskStatus.PENDING))
    assert sorted(task.name for task in tasks) == sorted(f"by {number}" for number in range(MANY))


@between_processes
def test_who_writes_for_too_long_is_named_to_other_processes(place: str) -> None:
    """Whose patience ends hears who holds the space and since when; then all goes on."""
    begin = datetime.now(UTC)
    with open_store(place) as store, unit_of_work(store, SPACE) as uow:
        busy = apart(workers.lose_patience, place, SPACE)
        workers.lay_out(uow)
        uow.commit()
    assert re.fullmatch(
        rf"process {os.getpid()} \(.+\)|server process \d+ \(herdbook\)", busy.holder
    )
    assert abs(busy.since - begin) < timedelta(minutes=1)
    assert str(busy).endswith("Nothing was written; try again")
    assert [task.id for task in asked(place, workers.everything)[0]] == [COUNTER]


def test_two_never_take_the_same_account(place: Place) -> None:
    """Sixteen that take the account whose turn it is get sixteen accounts."""
    space = "record/crowd"
    rows = [Account(email=f"{number}@example.org") for number in range(MANY)]
    accounts = prepared(place, lambda uow: uow.accounts.add_all(rows), space)
    start = barrier(place, MANY)
    taken = at_once(place, workers.take_account, [(space, start)] * MANY)
    assert sorted(taken) == sorted(account.id for account in accounts)


def test_every_task_is_claimed_once(place: Place) -> None:
    """Sixteen agents that claim until nothing is left have had every task once between them."""

    def plan(uow: UnitOfWork) -> tuple[list[str], list[str]]:
        agents = [
            uow.agents.add(Agent(name=f"agent {number}", worktree_id="here"))
            for number in range(MANY)
        ]
        tasks = uow.tasks.add_all([Task(name=f"task {number}") for number in range(3 * MANY)])
        ids = [task.id for task in tasks]
        uow.tasks.add_dependencies(zip(ids[MANY:], ids[: 2 * MANY], strict=True))
        return [agent.id for agent in agents], ids

    agents, tasks = prepared(place, plan)
    start = barrier(place, MANY)
    jobs = [(SPACE, start, agent) for agent in agents]
    claimed = itertools.chain(*at_once(place, workers.claim_all, jobs))
    assert Counter(claimed) == Counter(tasks)


def test_an_operation_asked_for_by_many_is_done_once(place: Place) -> None:
    """Sixteen that ask for the same operation at once get one answer, and it was applied once."""
    prepared(place, workers.lay_out)
    start = barrier(place, MANY)
    answers = at_once(place, workers.operate, [(SPACE, start, "operation")] * MANY)
    assert answers == [answers[0]] * MANY
    tasks, edges, _ = asked(place, workers.everything)
    assert sorted(task.id for task in tasks) == sorted([COUNTER, *answers[0]])
    assert len(edges) == 2


@between_processes
@pytest.mark.parametrize("fate", [workers.die_after_commit, workers.die_before_commit])
def test_an_operation_without_an_answer_can_be_asked_again(
    place: str, fate: Callable[..., Any]
) -> None:
    """Whoever died over it, before or after the commit, another process gets it done once."""
    prepared(place, workers.lay_out)
    with pytest.raises(Died) as death:
        apart(fate, place, SPACE, "operation")
    assert death.value.exitcode == -signal.SIGKILL
    there = [task.id for task in asked(place, workers.everything)[0] if task.id != COUNTER]
    assert len(there) == (3 if fate is workers.die_after_commit else 0)
    start = barrier(place, 1)
    answer = apart(workers.operate, place, SPACE, start, "operation")
    again = apart(workers.operate, place, SPACE, start, "operation")
    assert again == answer
    found = asked(place, everything)
    assert sorted(task.id for task in found.tasks) == sorted([COUNTER, *answer])
    assert sorted(there) in ([], sorted(answer))
    assert {entry.operation_id for entry in found.journal[1:]} == {"operation"}


@frozen
class Storm:
    """What writers noted before they were killed, and what was found behind them."""

    url: str
    ended: set[str]
    begun: set[str]
    found: Found

    @property
    def units(self) -> dict[str, list[str]]:
        """The parts that are there of each unit of work, by its label."""
        parts: dict[str, list[str]] = {}
        for task in self.found.tasks:
            if task.id != COUNTER:
                label, _, part = task.name.rpartition(" ")
                parts.setdefault(label, []).append(part)
        return parts


class Victim:
    """A writer that will be killed: by itself in mid-transaction, or by us at any time."""

    def __init__(self, url: str, notes: Path, last: int | None) -> None:
        self._notes = notes
        self._dies_alone = last is not None
        self._child = Child(workers.add_until_killed, url, SPACE, str(notes), last)

    def killed(self, pause: float) -> tuple[set[str], set[str]]:
        """Kill it while it works; the units that had begun, and those it had seen committed."""
        if not self._dies_alone:
            while not self._notes.exists() or not self._notes.read_bytes():
                time.sleep(0.001)
            time.sleep(pause)
            self._child.kill()
        with pytest.raises(Died) as death:
            self._child.result()
        assert death.value.exitcode == -signal.SIGKILL
        notes = [line.split() for line in self._notes.read_text().splitlines()]
        begun, ended = (
            {f"{self._notes} unit {number}" for what, number in notes if what == each}
            for each in ("begun", "ended")
        )
        return begun, ended


@pytest.fixture(scope="module", params=SHARED)
def storm(
    request: pytest.FixtureRequest,
    new_url: Callable[[str], str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Storm:
    """Fifty writers, four at a time, each killed with -9: every other one in mid-transaction."""
    url, folder = new_url(request.param), tmp_path_factory.mktemp("notes")
    prepared(url, workers.lay_out)
    chance = random.Random(2)
    victims: deque[Victim] = deque()
    begun: set[str] = set()
    ended: set[str] = set()
    for number in range(KILLS):
        last = chance.randrange(4) if number % 2 else None
        victims.append(Victim(url, folder / f"{number}", last))
        if len(victims) == 4 or number == KILLS - 1:
            while len(victims) > (3 if number < KILLS - 1 else 0):
                more_begun, more_ended = victims.popleft().killed(chance.uniform(0, 0.03))
                begun |= more_begun
                ended |= more_ended
    return Storm(url, ended, begun, asked(url, everything))


def test_what_was_acknowledged_survives_the_death_of_writers(storm: Storm) -> None:
    """Every unit of work whose commit had returned is there."""
    assert storm.ended
    assert storm.ended <= set(storm.units)


def test_no_unit_of_work_is_there_in_part(storm: Storm) -> None:
    """What is there has all its rows and counts once; nothing else is there."""
    assert set(storm.units) <= storm.begun
    assert all(sorted(parts) == ["0", "a", "b", "c"] for parts in storm.units.values())
    assert len(storm.found.edges) == 2 * len(storm.units)
    (counter,) = (task for task in storm.found.tasks if task.id == COUNTER)
    assert counter.order == len(storm.units)


def test_the_journal_survives_the_death_of_writers(storm: Storm) -> None:
    """It has no gap and tells exactly the rows that are there."""
    journal = storm.found.journal
    assert [entry.seq for entry in journal] == list(range(1, storm.found.last + 1))
    for kind, rows in ((TASKS, storm.found.tasks), (TASK_DEPENDENCIES, storm.found.edges)):
        assert rebuilt(kind, journal) == {row.id: encode_row(kind, row) for row in rows}
    assert storm.found.differences == []


def test_a_store_goes_on_after_the_death_of_writers(storm: Storm) -> None:
    """The next process writes as if nothing had been, without any repair."""
    added = prepared(storm.url, lambda uow: workers.add_three(uow, "after"))
    found = asked(storm.url, lambda uow: uow.tasks.get_many(added))
    assert [task.name for task in found] == ["after a", "after b", "after c"]
