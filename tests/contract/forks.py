"""The program of `test_fork.py`: opens a store, forks, and goes on.

Run as `python -m tests.contract.forks <url> <scene> <act>…` in an interpreter of its own, because a
child that ends takes all with it that its parent had: stacks, exit handlers, objects to destroy.
One child is forked for each act. It prints, as JSON, how the children ended and which tasks the
parent then finds.
"""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from attrs import evolve

from herdbook.adapters import open_store
from herdbook.domain.errors import StoreBusy, StoreUnavailable
from herdbook.domain.plan.model import Task
from herdbook.ports.engine.dictionary import TASKS
from herdbook.ports.engine.query import find
from herdbook.ports.engine.store import Store
from herdbook.ports.unit_of_work.run import read, run
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork, unit_of_work

SPACE = "work/forked"
REFUSED = 3
"""How a child ends that was told that the store is not for it."""
CLEAR = "was forked|is held by"
STUCK = 120
"""After so many seconds a child that waits for what cannot come is ended by SIGALRM."""

Act = Callable[[Store, UnitOfWork | None], None]
Codes = dict[str, int]


def add(store: Store, name: str) -> None:
    """Add a task of this name."""
    run(store, SPACE, lambda uow: uow.tasks.add(Task(name=name)))


def tasks(uow: UnitOfWork) -> list[Task]:
    """All tasks there are."""
    return uow.tasks.select(find(TASKS))


def names_in(store: Store) -> list[str]:
    """The names of all tasks, as a new transaction sees them."""
    return sorted(task.name for task in read(store, SPACE, tasks))


def fork(act: Act, store: Store, uow: UnitOfWork | None = None) -> int:
    """Fork a child that does this and then unwinds its parent's stack; tells the parent its pid."""
    child = os.fork()
    if child:
        return child
    signal.alarm(STUCK)
    try:
        act(store, uow)
    except (StoreUnavailable, StoreBusy) as error:
        sys.exit(REFUSED if re.search(CLEAR, str(error)) else str(error))
    sys.exit()


def ended(child: int) -> int:
    """The exit code of a child, negative for a signal."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def leave(_store: Store, _uow: UnitOfWork | None) -> None:
    """Do nothing more than end: in good order, with the parent's objects in its hands."""


def vanish(_store: Store, _uow: UnitOfWork | None) -> None:
    """End at once, without any handler."""
    os._exit(0)


def close(store: Store, _uow: UnitOfWork | None) -> None:
    """Close the store, which is the parent's as well."""
    store.close()


def look(store: Store, _uow: UnitOfWork | None) -> None:
    """Read what the parent has written."""
    assert "before" in names_in(store)


def put(store: Store, _uow: UnitOfWork | None) -> None:
    """Write something."""
    add(store, "by the child")


def put_ten(store: Store, _uow: UnitOfWork | None) -> None:
    """Write for some time."""
    for number in range(10):
        add(store, f"by the child {number}")


def write_on(_store: Store, uow: UnitOfWork | None) -> None:
    """Go on with the parent's transaction."""
    assert uow is not None
    uow.tasks.add(Task(name="in the parent's transaction"))


def read_on(_store: Store, uow: UnitOfWork | None) -> None:
    """Go on reading in the parent's transaction."""
    assert uow is not None
    tasks(uow)


def commit(_store: Store, uow: UnitOfWork | None) -> None:
    """End the parent's transaction."""
    assert uow is not None
    uow.commit()


ACTS: dict[str, Act] = {
    act.__name__: act
    for act in (leave, vanish, close, look, put, put_ten, write_on, read_on, commit)
}


def between(store: Store, acts: list[str]) -> Codes:
    """Children forked while nothing is going on."""
    return {name: ended(fork(ACTS[name], store)) for name in acts}


def beside(store: Store, acts: list[str]) -> Codes:
    """Parent and children write at the same time."""
    children = {name: fork(ACTS[name], store) for name in acts}
    for number in range(10):
        add(store, f"by the parent {number}")
    return {name: ended(child) for name, child in children.items()}


def threads(store: Store, acts: list[str]) -> Codes:
    """Children forked while threads of the parent are in transactions."""
    inside, over = threading.Event(), threading.Event()
    written: list[str] = []

    def write(number: int) -> None:
        while not over.is_set():
            name = f"by thread {number}, {len(written)}"
            with unit_of_work(store, SPACE) as uow:
                uow.tasks.add(Task(name=name))
                inside.set()
                uow.commit()
            written.append(name)

    running = [threading.Thread(target=write, args=(number,)) for number in range(2)]
    for thread in running:
        thread.start()
    codes = {}
    for name in acts:
        inside.clear()
        inside.wait()
        codes[name] = ended(fork(ACTS[name], store))
    over.set()
    for thread in running:
        thread.join()
    found = names_in(store)
    assert sorted(written) == [name for name in found if name.startswith("by thread")]
    run(store, SPACE, _keep_only, "before", "by the child")
    return codes


def _keep_only(uow: UnitOfWork, *kept: str) -> None:
    uow.tasks.remove_all([task.id for task in tasks(uow) if task.name not in kept])


def writing(store: Store, acts: list[str]) -> Codes:
    """Children forked by the thread that is writing; the parent then writes on and commits."""
    with unit_of_work(store, SPACE) as uow:
        uow.tasks.add(Task(name="begun before the fork"))
        codes = {name: ended(fork(ACTS[name], store, uow)) for name in acts}
        uow.tasks.add(Task(name="ended after the fork"))
        uow.commit()
    return codes


def reading(store: Store, acts: list[str]) -> Codes:
    """Children forked by the thread that is reading; others write; the parent then reads on."""
    rows = [Task(name=f"page {n}", description=f"{n}" * 1_000) for n in range(200)]
    kept = run(store, SPACE, lambda uow: uow.tasks.add_all(rows))
    with unit_of_work(store, SPACE, write=False) as uow:
        codes = {name: ended(fork(ACTS[name], store, uow)) for name in acts}
        if store.url != "memory://":
            subprocess.run([sys.executable, "-m", __spec__.name, store.url], check=True)
        found = {task.id: task for task in tasks(uow)}
    assert [found.get(task.id) for task in kept] == kept
    run(store, SPACE, _keep_only, "before")
    return codes


def overwrite(url: str) -> None:
    """Write all rows again and again, so that what nobody protects is reused."""
    # A store that lets nobody write while one reads has nothing to fear from writers.
    with suppress(StoreBusy), open_store(url, patience=0.5) as store:
        for text in "abcde":
            run(store, SPACE, _describe_all, text * 1_000)


def _describe_all(uow: UnitOfWork, text: str) -> None:
    uow.tasks.save_all([evolve(task, description=text) for task in tasks(uow)])


def two_stores(store: Store, acts: list[str]) -> Codes:
    """Children forked while a thread goes from a transaction on one store into one on another."""
    url, *acts = acts
    inside, forking = threading.Event(), threading.Event()
    with open_store(url, patience=1.0) as other:

        def write() -> None:
            with unit_of_work(other, SPACE) as uow:
                inside.set()
                forking.wait()
                time.sleep(0.2)
                add(store, "from within")
                uow.tasks.add(Task(name="before"))
                uow.commit()

        thread = threading.Thread(target=write)
        thread.start()
        inside.wait()
        forking.set()
        codes = {name: ended(fork(ACTS[name], other)) for name in acts}
        thread.join()
        assert names_in(other) == ["before"]
    return codes


SCENES = {
    scene.__name__: scene for scene in (between, beside, threads, writing, reading, two_stores)
}


def main(url: str, scene: str, acts: list[str]) -> None:
    """Play one scene."""
    # Who forks inside a transaction and waits for the child must not wait long.
    patience = 60.0 if scene in ("between", "beside", "threads") else 1.0
    with open_store(url, patience=patience) as store:
        add(store, "before")
        codes = SCENES[scene](store, acts)
        add(store, "after")
        print(json.dumps({"children": codes, "names": names_in(store)}))  # noqa: T201


if __name__ == "__main__":
    match sys.argv[1:]:
        case [url]:
            overwrite(url)
        case [url, scene, *acts]:
            main(url, scene, acts)
