"""A process that is stopped in the midst of a write stops nobody for ever.

By Ctrl-Z, a debugger or a paused container. Readers go on where the engine lets them, writers are
told who holds the store when their patience ends, and Ctrl-C ends every wait.
"""

import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import psutil
import pytest

from herdbook.adapters import open_store
from herdbook.ports.unit_of_work.run import run
from tests.contract import stopped
from tests.contract.children import Child, apart, event
from tests.contract.conftest import SHARED
from tests.contract.space import HERE, everything_in

ENDED_BEFORE = 60.0
"""Far more than patience and a slow machine together; who waits for ever is far beyond it."""

shared = pytest.mark.parametrize("engine", SHARED, indirect=True)


@contextmanager
def stopped_writer(url: str) -> Iterator[Child]:
    """A process that is stopped in the midst of a write for as long as the block lasts."""
    inside = event(url)
    child = Child(stopped.stop_inside, url, inside)
    try:
        assert inside.wait(ENDED_BEFORE)
        while psutil.Process(child.pid).status() != psutil.STATUS_STOPPED:
            time.sleep(0.01)
        yield child
    finally:
        os.kill(child.pid, signal.SIGCONT)
        child.result()


@pytest.fixture
def url(engine: str, new_url: Callable[[str], str]) -> str:
    """A store with one task in it."""
    place = new_url(engine)
    with open_store(place) as store:
        run(store, HERE, stopped.add, "before")
    return place


def names_in(url: str) -> list[str]:
    """The names of all tasks."""
    with open_store(url, create=False) as store:
        return sorted(task.name for task in everything_in(store)["tasks"])


@pytest.mark.parametrize("engine", ["lmdb", "postgres"], indirect=True)
def test_readers_go_on(url: str) -> None:
    """They open the store and read what was committed, without waiting for anybody."""
    with stopped_writer(url):
        seen = apart(stopped.look, url)
    assert seen.names == ["before"]
    assert seen.seconds < ENDED_BEFORE


# A DuckDB file is read or written, but not both: readers wait for writers there, in turn.
@pytest.mark.parametrize("engine", ["duckdb"], indirect=True)
def test_readers_that_have_to_wait_are_told_for_whom(url: str) -> None:
    """Their patience ends, and the error names the process."""
    with stopped_writer(url) as writer:
        seen = apart(stopped.look, url)
    assert re.match(rf"process {writer.pid} \(.+\)", seen.busy.holder)
    assert seen.seconds < ENDED_BEFORE


@shared
def test_writers_are_told_who_holds_the_store(engine: str, url: str) -> None:
    """Their patience ends with an error that names the process and since when it holds it."""
    begin = datetime.now(UTC)
    with stopped_writer(url) as writer:
        refused = apart(stopped.write, url)
    who = r"server process \d+ \(herdbook\)" if engine == "postgres" else rf"process {writer.pid} "
    assert re.match(who, refused.busy.holder)
    assert abs(refused.busy.since - begin) < timedelta(minutes=1)
    assert stopped.PATIENCE - 0.1 <= refused.seconds < ENDED_BEFORE
    assert str(refused.busy).endswith("Nothing was written; try again")


@shared
def test_an_interrupt_ends_the_wait(url: str) -> None:
    """A process that would wait for an hour ends at Ctrl-C."""
    waiting = event(url)
    with stopped_writer(url):
        child = Child(stopped.wait_until_interrupted, url, waiting)
        waiting.wait(5.0)  # where opening waits too, it never tells
        time.sleep(0.5)
        begin = time.monotonic()
        os.kill(child.pid, signal.SIGINT)
        assert child.result() - begin < ENDED_BEFORE


@shared
def test_all_is_well_when_it_goes_on(url: str) -> None:
    """It commits what it had begun, and whoever waited writes after it."""
    with stopped_writer(url):
        apart(stopped.look, url)
        apart(stopped.write, url)
    with open_store(url) as store:
        run(store, HERE, stopped.add, "after")
    assert names_in(url) == ["after", "before", "of the one that was stopped"]
