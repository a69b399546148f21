"""Who waits for changes is woken by every commit, on every store, and never holds up a writer."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from herdbook.adapters import open_store
from herdbook.adapters.wakeups.socket_folder import socket_folder
from herdbook.domain.plan.model import Task
from herdbook.ports.engine.store import Store
from herdbook.ports.engine.wakeups import Listener, StopEvent
from herdbook.ports.unit_of_work.run import read, run
from herdbook.services.journal.feed import Feed, Waiter
from tests.contract import followers
from tests.contract.children import Child, Place, at_once, begun, event, opened
from tests.contract.claims import add_tasks
from tests.contract.conftest import SHARED, Begin
from tests.contract.followers import HOUR

among_processes = pytest.mark.parametrize("engine", SHARED, indirect=True)
SPACE = "work/feed"
WRITERS, COMMITS = 4, 15


def _woken(listener: Listener) -> bool:
    """Whether it was rung, without waiting for a ring that will not come."""
    return listener.wait(0)


def _sockets(store: Store) -> list[str]:
    """The names of the sockets of those who listen to a store."""
    folder = Path(socket_folder(store.uuid) or "missing")
    return sorted(each.name for each in folder.iterdir()) if folder.exists() else []


def _listening_sockets(store: Store) -> list[str]:
    """Those of the listeners to a space.

    The relay of a server, which listens to all, comes and goes when it likes; the name of its
    socket ends in `new` until it can be rung.
    """
    return [each for each in _sockets(store) if not each.endswith(("-all", "-new"))]


@pytest.fixture
def listener(store: Store, space: str) -> Iterator[Listener]:
    with store.wakeups.listen(space, look=HOUR) as listening:
        yield listening


@pytest.fixture
def place(engine: str, new_url: Callable[[str], str]) -> Place:
    """A new store of the engine, as workers come to it, in which there is a task."""
    url = new_url(engine)
    made = open_store(url)
    run(made, SPACE, lambda uow: uow.tasks.add(Task(name="first")))
    if engine not in SHARED:
        return made
    made.close()
    return url


def test_a_commit_wakes_who_listens_to_its_space(begin: Begin, listener: Listener) -> None:
    """By a ring, and once for the rings until then."""
    add_tasks(begin, Task(name="x"))
    assert listener.wait()
    assert not _woken(listener)


def test_who_listens_to_all_spaces_is_woken_too(begin: Begin, store: Store) -> None:
    """As a server is that serves several."""
    with store.wakeups.listen(look=HOUR) as listener:
        add_tasks(begin, Task(name="x"))
        assert listener.wait()


def test_another_space_wakes_nobody(begin: Begin, listener: Listener) -> None:
    """Its changes are none of the listener's."""
    add_tasks(begin.in_space(f"{begin.space}-other"), Task(name="x"))
    assert not _woken(listener)


def test_nothing_committed_wakes_nobody(begin: Begin, listener: Listener) -> None:
    """Neither a read nor a unit of work that was given up."""
    with begin(write=False) as uow:
        uow.journal.last()
    with begin() as uow:
        uow.tasks.add(Task(name="x"))
    assert not _woken(listener)


def test_a_look_ends_a_wait_without_a_ring(store: Store, space: str) -> None:
    """So that a ring that was lost costs only time."""
    with store.wakeups.listen(space, look=0.001) as listener:
        assert not listener.wait()
    with store.wakeups.listen(space, look=HOUR) as listener:
        assert not listener.wait(0.001)


def test_who_is_told_to_stop_waits_no_longer(store: Store, space: str) -> None:
    """Also if it is told before it waits."""
    stop = StopEvent()
    with Waiter(store, space, look=HOUR) as waiter:
        stop.waiter = waiter
        waiter.fileno()
        stop.set()
        assert not waiter.wait()


def test_the_last_of_many_commits_is_rung(begin: Begin, store: Store, space: str) -> None:
    """Many become a few rings, and whoever reads after each ring has read everything."""
    with Feed(store, space, 0, look=HOUR) as feed:
        feed.fileno()
        add_tasks(begin, *(Task(name="x") for _ in range(3)))
        for _ in range(50):
            run(store, space, lambda uow: uow.tasks.add(Task(name="y")))
        rings = 0
        while feed.since < 53:
            rings += feed.wait()
            while feed.take():
                continue
        assert 1 <= rings <= 51


def test_listeners_in_other_processes_get_everything_by_rings_alone(place: Place) -> None:
    """What four writers commit, to the last entry, though nobody ever looks without a ring."""
    ready = [event(place) for _ in range(3)]
    total = 1 + WRITERS * COMMITS
    readers = [begun(place, followers.follow_rings, SPACE, total, each) for each in ready]
    for each in ready:
        each.wait()
    at_once(place, followers.commit_tasks, [(SPACE, COMMITS)] * WRITERS)
    for each in readers:
        assert each() == list(range(1, total + 1))


def test_a_hundred_and_fifty_listeners_are_all_rung(begin: Begin, store: Store, space: str) -> None:
    """Each by one commit, and their sockets go with them."""
    with ExitStack() as stack:
        listening = [
            stack.enter_context(store.wakeups.listen(space, look=HOUR)) for _ in range(150)
        ]
        add_tasks(begin, Task(name="x"))
        assert all(each.wait() for each in listening)
        before = _sockets(store)
    assert len(before) >= 150
    assert len(set(before) & set(_sockets(store))) <= 1  # of the relay of a server


@among_processes
def test_a_listener_that_was_killed_is_forgotten(place: str) -> None:
    """The next ring finds its socket dead and removes it; the others are rung."""
    ready = event(place)
    child = Child(followers.follow_rings, place, SPACE, 99, ready)
    ready.wait()
    with opened(place) as shared, shared.wakeups.listen(SPACE, look=HOUR) as listener:
        before = _listening_sockets(shared)
        child.kill()
        child.wait()
        run(shared, SPACE, lambda uow: uow.tasks.add(Task(name="x")))
        assert listener.wait()
        left = set(before) - set(_listening_sockets(shared))
        assert left
        assert all(each.startswith(f"{child.pid}-") for each in left)
        assert not any(each.startswith(f"{child.pid}-") for each in _sockets(shared))


def test_a_listener_that_does_not_read_holds_up_nobody(
    begin: Begin, store: Store, space: str
) -> None:
    """Its socket is full after a few rings; it has read everything when it reads again."""
    with Feed(store, space, 0, look=HOUR) as stuck:
        stuck.fileno()
        followers.commit_tasks(store, space, 40)
        store.wakeups.close()  # rings what it has put off
        add_tasks(begin, Task(name="x"))
        assert stuck.wait()
        while stuck.take():
            continue
        assert stuck.since == 41


@among_processes
def test_a_stopped_listener_holds_up_nobody(place: str) -> None:
    """A process that does not run is rung until it is full, and then no more; it misses nothing."""
    ready = event(place)
    child = Child(followers.follow_rings, place, SPACE, 41, ready)
    ready.wait()
    followers.commit_tasks(place, "work/other", 1)  # now it has nothing of the store in its hands
    os.kill(child.pid, signal.SIGSTOP)
    try:
        followers.commit_tasks(place, SPACE, 40)
    finally:
        os.kill(child.pid, signal.SIGCONT)
    assert child.result() == list(range(1, 42))


@among_processes
def test_nothing_is_missed_when_writers_are_killed(place: str) -> None:
    """One that dies between its commit and its ring is found by the next look."""
    ended, ready = event(place), event(place)
    reader = begun(place, followers.follow_until, SPACE, ended, ready)
    ready.wait()
    for number in range(WRITERS):
        started = event(place)
        writer = Child(followers.commit_for_ever, place, SPACE, number, started)
        started.wait()
        writer.kill()
        writer.wait()
    ended.set()
    heard = reader()
    with opened(place) as store:
        kept = read(store, SPACE, lambda uow: [each.seq for each in uow.journal.all_entries()])
    assert heard == kept
    assert len(kept) > WRITERS


def test_a_forked_child_leaves_the_listener_of_its_parent_alone(
    begin: Begin, store: Store, space: str
) -> None:
    """It may close what it has inherited."""
    with store.wakeups.listen(space, look=HOUR) as listener:
        pid = os.fork()
        if not pid:
            listener.close()
            os._exit(0)
        os.waitpid(pid, 0)
        add_tasks(begin, Task(name="x"))
        assert listener.wait()
