"""What many processes do at once with a store on a Postgres server, for tests of crowds."""

from threading import Barrier, Event

from herdbook.domain.plan.model import Task
from herdbook.ports.engine.dictionary import TASKS
from herdbook.ports.engine.query import find
from herdbook.ports.engine.store import TryAgain
from herdbook.ports.unit_of_work.run import read, run
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from tests.contract.children import opened

SPACE = "work/crowd"
Names = list[str]


def add(uow: UnitOfWork, name: str) -> str:
    """Add a task of this name."""
    return uow.tasks.add(Task(name=name)).name


def names(uow: UnitOfWork) -> Names:
    """The names of all tasks, in order."""
    return sorted(task.name for task in uow.select(find(TASKS)))


def add_some(url: str, start: Barrier, number: int, units: int) -> Names:
    """Come when all others come, and add some tasks and read, one transaction each."""
    start.wait()
    added: Names = []
    with opened(url) as store:
        for unit in range(units):
            added.append(run(store, SPACE, add, f"{number}-{unit}"))
            assert added[-1] in read(store, SPACE, names)
    return added


def add_until(url: str, number: int, over: Event) -> tuple[Names, Names, list[str]]:
    """Add until told to stop, opening the store anew every few tasks.

    Tells what was acknowledged, what was not, and why.
    """
    added: Names = []
    doubtful: Names = []
    reasons: list[str] = []
    unit = 0
    while not over.is_set():
        with opened(url) as store:
            for _ in range(3):
                unit += 1
                name = f"{number}-{unit}"
                try:
                    added.append(run(store, SPACE, add, name))
                except TryAgain as error:
                    doubtful.append(name)
                    reasons.append(str(error))
                if number % 2:
                    read(store, SPACE, names)
    return added, doubtful, reasons
