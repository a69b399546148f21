"""What processes do while one of them is stopped in the midst of a write."""

import os
import signal
import time
from threading import Event
from typing import NamedTuple

from herdbook.adapters import open_store
from herdbook.domain.errors import StoreBusy
from herdbook.domain.plan.model import Task
from herdbook.ports.unit_of_work.run import run
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork, unit_of_work
from tests.contract.space import HERE, everything_in

PATIENCE = 1.0


class Outcome(NamedTuple):
    """What came of an attempt: the names of the tasks that are there, or an error; and how long."""

    names: list[str] | None
    busy: StoreBusy | None
    seconds: float


def add(uow: UnitOfWork, name: str) -> None:
    """Add a task of this name."""
    uow.tasks.add(Task(name=name))


def stop_inside(url: str, inside: Event) -> None:
    """Begin to write, stop as by Ctrl-Z, and commit once somebody lets us go on."""
    with open_store(url) as store, unit_of_work(store, HERE) as uow:
        add(uow, "of the one that was stopped")
        inside.set()
        os.kill(os.getpid(), signal.SIGSTOP)
        uow.commit()


def look(url: str) -> Outcome:
    """Open the store and read all of it."""
    begun = time.monotonic()
    try:
        with open_store(url, create=False, patience=PATIENCE) as store:
            names = sorted(task.name for task in everything_in(store).get("tasks", []))
    except StoreBusy as busy:
        return Outcome(None, busy, time.monotonic() - begun)
    return Outcome(names, None, time.monotonic() - begun)


def write(url: str) -> Outcome:
    """Open the store and add a task, with little patience."""
    begun = time.monotonic()
    try:
        with open_store(url, create=False, patience=PATIENCE) as store:
            run(store, HERE, add, "of an impatient one")
    except StoreBusy as busy:
        return Outcome(None, busy, time.monotonic() - begun)
    return Outcome([], None, time.monotonic() - begun)


def wait_until_interrupted(url: str, waiting: Event) -> float:
    """Wait to write with all the patience there is; when Ctrl-C ended that."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with open_store(url, create=False, patience=3_600.0) as store:
            waiting.set()
            run(store, HERE, add, "of an interrupted one")
    except KeyboardInterrupt:
        return time.monotonic()
    raise AssertionError("nothing interrupted it")
