"""What a process of its own does with a store that may be damaged, full or closed to it."""

import random
import resource
import signal
from pathlib import Path
from typing import Any, Never

from herdbook.adapters import open_store
from herdbook.domain.errors import HerdbookError, StoreFull
from herdbook.domain.plan.model import Task
from herdbook.ports.engine.store import Store
from herdbook.ports.unit_of_work.run import run
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork, unit_of_work
from tests.contract.space import HERE, everything_in
from tests.contract.workers import die

MORE_THAN_FITS = 10_000

Refusal = tuple[type, str]


def add(uow: UnitOfWork, name: str, description: str | None = None) -> str:
    """Add a task; its id."""
    return uow.tasks.add(Task(name=name, description=description)).id


def refusal_of(url: str, create: bool = True) -> Refusal:  # noqa: FBT002
    """How a store says no to being opened."""
    try:
        open_store(url, create=create).close()
    except HerdbookError as error:
        return type(error), str(error)
    raise AssertionError("it was opened")


def visit(url: str) -> dict[str, list[Any]] | Refusal:
    """All that a store holds, or how it said no, when opened or when read."""
    try:
        with open_store(url) as store:
            return everything_in(store)
    except HerdbookError as error:
        return type(error), str(error)


def fill(store: Store) -> tuple[list[str], StoreFull]:
    """Add tasks until there is no more room; what was acknowledged, and how the store said no."""
    acknowledged: list[str] = []
    while len(acknowledged) < MORE_THAN_FITS:
        try:
            acknowledged.append(run(store, HERE, add, "one more", random.randbytes(20_000).hex()))
        except StoreFull as full:
            return acknowledged, full
    raise AssertionError("there was room for everything")


def fill_with_little_room(url: str, room: int) -> tuple[list[str], StoreFull]:
    """Add tasks until a file cannot grow by more than so many bytes, or its disk is full."""
    with open_store(url) as store:
        if room:
            path = Path(url.partition("://")[2])
            largest = max(
                each.stat().st_size for each in (path, *path.rglob("*")) if each.is_file()
            )
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (largest + room, largest + room))
        return fill(store)


def make_with_little_room(url: str, room: int | None) -> Refusal | None:
    """Make a store where no file may be longer than so many bytes; how that was refused, if so."""
    if room is not None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
    try:
        open_store(url).close()
    except HerdbookError as error:
        return type(error), str(error)
    return None


def add_and_die(url: str, number: int) -> Never:
    """Add tasks and die with the last commit, before the store can be put down."""
    with open_store(url) as store:
        for each in range(number):
            with unit_of_work(store, HERE) as uow:
                add(uow, f"last {each}", random.randbytes(500).hex())
                uow.commit()
                if each == number - 1:
                    die()
    raise AssertionError("it died inside")


def add_many(url: str, size_limit: int, number: int) -> list[str]:
    """Add large tasks, with that much room."""
    with open_store(url, size_limit=size_limit) as store:
        return [run(store, HERE, add, f"task {n}", "long" * 25_000) for n in range(number)]
