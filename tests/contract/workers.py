"""What the processes of `test_processes.py` do with the store they share."""

import itertools
import os
import signal
from contextlib import suppress
from threading import Barrier, Event
from typing import Any, Never

from herdbook.adapters import open_store
from herdbook.domain.entity import evolve
from herdbook.domain.errors import StoreBusy, StoreUnavailable
from herdbook.domain.journal import Actor, JournalEntry
from herdbook.domain.plan.model import Task, TaskStatus
from herdbook.ports.engine.dictionary import TASK_DEPENDENCIES, TASKS
from herdbook.ports.engine.query import find
from herdbook.ports.repositories.base import PAGE
from herdbook.ports.unit_of_work.run import read, run
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.ports.world.halts import NO_HALTS
from herdbook.services.plan import claims
from tests.contract.children import Place, opened

COUNTER = "tsk_counter"
UNITS = 4
"""How many times a writer of the crowd adds something."""

Ids = list[str]


def lay_out(uow: UnitOfWork) -> None:
    """Add the row that every unit of work counts in."""
    uow.tasks.add(Task(id=COUNTER, name="counter"))


def add_three(uow: UnitOfWork, label: str) -> Ids:
    """A unit of work of several rows: three tasks in a chain and the count of such units."""
    tasks = uow.tasks.add_all([Task(name=f"{label} {part}") for part in "abc"])
    first, second, third = (task.id for task in tasks)
    uow.tasks.add_dependencies([(second, first), (third, second)])
    counter = uow.tasks.get(COUNTER)
    uow.tasks.save(evolve(counter, order=counter.order + 1))
    return [first, second, third]


def complete(uow: UnitOfWork, task_id: str) -> None:
    """Finish a task, which lets the next of its chain go."""
    uow.tasks.save(evolve(uow.tasks.get(task_id), status=TaskStatus.COMPLETED))


def write(place: Place, space: str, number: int, start: Barrier, followed: Event) -> list[Ids]:
    """Add and update with all the others; the second half once the follower has seen something."""
    added: list[Ids] = []
    actor = Actor(agent=f"writer {number}")
    with opened(place) as store:
        start.wait()
        for unit in range(UNITS):
            if unit == UNITS // 2:
                followed.wait()
            label = f"writer {number} unit {unit}"
            added.append(run(store, space, add_three, label, actor=actor))
            run(store, space, complete, added[-1][0], actor=actor)
    return added


def news(uow: UnitOfWork, seen: int) -> list[JournalEntry]:
    """A few entries that are new to who has seen this many."""
    return uow.journal.since(seen, limit=50)


def follow(
    place: Place, space: str, start: Barrier, followed: Event, ended: Event
) -> list[list[JournalEntry]]:
    """Read the journal from where the last look ended, until all is written; what each look saw."""
    looks: list[list[JournalEntry]] = []
    seen = 0
    with opened(place) as store:
        start.wait()
        while True:
            last_look = ended.is_set()
            fresh = read(store, space, news, seen)
            if fresh:
                seen = fresh[-1].seq
                looks.append(fresh)
                followed.set()
            elif last_look:
                return looks


def found(place: Place, space: str, start: Barrier, number: int) -> str:
    """Open a store that all others open at the same time, and write; which store it is."""
    start.wait()
    with opened(place) as store:
        run(store, space, lambda uow: uow.tasks.add(Task(name=f"by {number}")))
        return store.uuid


def lose_patience(url: str, space: str) -> StoreBusy:
    """Try to write while somebody else does."""
    try:
        with open_store(url, patience=0.3) as store:
            run(store, space, lay_out)
    except StoreBusy as busy:
        return busy
    raise AssertionError("it was let in")


def take_account(place: Place, space: str, start: Barrier) -> str:
    """Take the account whose turn it is."""
    with opened(place) as store:
        start.wait()
        taken = run(store, space, lambda uow: uow.accounts.next_available("claude"))
    assert taken is not None
    return taken.id


def claim_all(place: Place, space: str, start: Barrier, agent_id: str) -> Ids:
    """Claim tasks and complete them until there is none left."""
    claimed: Ids = []
    with opened(place) as store:
        start.wait()
        while claim := run(store, space, claims.claim, agent_id, halts=NO_HALTS):
            claimed.append(claim.task.id)
            run(store, space, claims.complete, claim.task.id, claim.fence)
    return claimed


def operate(place: Place, space: str, start: Barrier, operation_id: str) -> Ids:
    """Ask for an operation that others ask for as well."""
    with opened(place) as store:
        start.wait()
        return run(store, space, add_three, "once", operation_id=operation_id)


def insist(url: str, space: str, number: int, over: Event) -> list[Ids]:
    """Ask for operation after operation, each until it is answered, whatever the server does."""
    answers: list[Ids] = []
    with open_store(url) as store:
        while not over.is_set():
            operation_id = f"writer {number} operation {len(answers)}"
            with suppress(StoreUnavailable):
                answers.append(
                    run(store, space, add_three, operation_id, operation_id=operation_id)
                )
    return answers


def die() -> Never:
    """End as by `kill -9`, at this very place."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("nobody survives this")


def die_after_commit(url: str, space: str, operation_id: str) -> Never:
    """Commit, and die before anybody hears of it."""
    with open_store(url) as store:
        run(store, space, add_three, "once", operation_id=operation_id)
        die()


def die_before_commit(url: str, space: str, operation_id: str) -> Never:
    """Do everything but commit, and die."""

    def unfinished(uow: UnitOfWork) -> Never:
        add_three(uow, "once")
        die()

    with open_store(url) as store:
        run(store, space, unfinished, operation_id=operation_id)
    raise AssertionError("it died inside")


def add_until_killed(url: str, space: str, notes: str, last: int | None) -> None:
    """Write unit after unit; note when one begins and, once its commit returned, when it ended.

    In the unit with the number `last` it dies by itself, with half of its rows written.
    """
    book = os.open(notes, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def unit(uow: UnitOfWork, number: int) -> None:
        os.write(book, f"begun {number}\n".encode())
        label = f"{notes} unit {number}"
        uow.tasks.add(Task(name=f"{label} 0"))
        if number == last:
            die()
        add_three(uow, label)

    with open_store(url) as store:
        for number in itertools.count():
            run(store, space, unit, number)
            os.write(book, f"ended {number}\n".encode())


def everything(uow: UnitOfWork) -> tuple[list[Task], list[Any], list[JournalEntry]]:
    """The tasks, their dependencies and the journal of a space."""
    tasks, edges = (
        list(uow.tasks.select_all(find(kind, limit=PAGE))) for kind in (TASKS, TASK_DEPENDENCIES)
    )
    return tasks, edges, list(uow.journal.all_entries())
