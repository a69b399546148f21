"""Through a server, listeners of other machines are rung too, over one connection per machine."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest

from herdbook.adapters import open_store
from herdbook.adapters.duckdb.broker.address import user_folder
from herdbook.domain.journal import JournalEntry
from herdbook.domain.plan.model import Task
from herdbook.ports.engine.store import Store
from herdbook.ports.engine.wakeups import Listener
from herdbook.ports.unit_of_work.run import read, run
from herdbook.services.journal import feed as feeds
from herdbook.services.journal.feed import Feed
from tests.contract import followers
from tests.contract.children import Child, apart, event
from tests.contract.followers import HOUR

SPACE = "work/relay"
TRIES = 100
"""How often to look for what other processes do; only a failing test does it to the end."""


@pytest.fixture
def url(new_url: Callable[[str], str]) -> str:
    return new_url("postgres")


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with open_store(url) as opened:
        run(opened, SPACE, lambda uow: uow.tasks.add(Task(name="first")))
        yield opened


@pytest.fixture
def listens(postgres_url: str, store: Store) -> Callable[[], list[int]]:
    """The server processes that serve a LISTEN for the store."""

    def ask() -> list[int]:
        with psycopg.connect(postgres_url, autocommit=True) as server:
            sql = "SELECT pid FROM pg_stat_activity WHERE query LIKE %s"
            return [pid for (pid,) in server.execute(sql, [f'%LISTEN "herdbook_{store.uuid}"'])]

    return ask


def is_rung_from_elsewhere(url: str, tmp_path: Path, listener: Listener) -> bool:
    """Whether a commit of another machine rings, once the relay listens."""
    for _ in range(TRIES):
        apart(followers.commit_elsewhere, url, str(tmp_path), SPACE)
        if listener.wait(0.2):
            return True
    return False


def until(condition: Callable[[], bool]) -> None:
    """Wait for what happens in other processes."""
    for _ in range(TRIES):
        if condition():
            return
        time.sleep(0.1)
    raise AssertionError("it did not come to that")


def test_a_commit_of_another_machine_rings(url: str, store: Store, tmp_path: Path) -> None:
    """By NOTIFY and the relay, which begins to listen soon after the first listener."""
    with store.wakeups.listen(SPACE, look=HOUR) as listener:
        assert is_rung_from_elsewhere(url, tmp_path, listener)


def test_a_commit_of_this_machine_rings_once(store: Store, tmp_path: Path, url: str) -> None:
    """What the relay is notified of and has heard here, it does not ring again."""
    with store.wakeups.listen(SPACE, look=HOUR) as listener:
        assert is_rung_from_elsewhere(url, tmp_path, listener)
        while listener.wait(0.2):
            continue
        run(store, SPACE, lambda uow: uow.tasks.add(Task(name="here")))
        assert listener.wait()
        # Notices come in the order of the commits: if there was a second ring, it is here now.
        assert is_rung_from_elsewhere(url, tmp_path, listener)
        assert not listener.wait(0)


def test_a_relay_leaves_nothing_behind(url: str, store: Store, tmp_path: Path) -> None:
    """When the last listener is gone, so is everything that has the store's name."""
    with store.wakeups.listen(SPACE, look=HOUR) as listener:
        assert is_rung_from_elsewhere(url, tmp_path, listener)
        folder = Path(user_folder())
        assert any(store.uuid in each.name for each in folder.iterdir())
    until(lambda: not any(store.uuid in each.name for each in folder.iterdir()))


def test_many_listening_processes_have_one_connection(
    url: str, listens: Callable[[], list[int]]
) -> None:
    """And when the one that has it is killed, another one takes over."""
    ready = [event(url) for _ in range(6)]
    children = [Child(followers.follow_looks, url, SPACE, each) for each in ready]
    for each in ready:
        each.wait()
    until(lambda: len(listens()) == 1)
    for number, child in enumerate(children, start=1):
        child.kill()
        child.wait()
        left = 1 if number < len(children) else 0
        until(lambda count=left: len(listens()) == count)  # type: ignore[misc]


def test_a_connection_that_is_cut_is_made_again(
    url: str, store: Store, listens: Callable[[], list[int]], postgres_url: str, tmp_path: Path
) -> None:
    """The listener notices nothing but a look that took longer."""
    with store.wakeups.listen(SPACE, look=HOUR) as listener:
        until(lambda: len(listens()) == 1)
        first = listens()
        with psycopg.connect(postgres_url, autocommit=True) as server:
            server.execute("SELECT pg_terminate_backend(%s)", first)
        until(lambda: listens() not in ([], first))
        assert is_rung_from_elsewhere(url, tmp_path, listener)


def test_the_relay_reads_once_for_all_listeners(
    url: str, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What another machine has committed it rings with the entries, and nobody else reads them."""
    with ExitStack() as stack:
        following = [stack.enter_context(Feed(store, SPACE, 0, look=HOUR)) for _ in range(5)]
        for each in following:
            each.fileno()
        with store.wakeups.listen(SPACE, look=HOUR) as listener:
            assert is_rung_from_elsewhere(url, tmp_path, listener)
        for each in following:
            while each.take() or each.wait(0.2):  # the relay may still ring
                continue
            assert each.take() == []
        last = following[0].last
        monkeypatch.setattr(feeds, "read", None)  # who reads now fails
        apart(followers.commit_elsewhere, url, str(tmp_path), SPACE)
        found = [_wait_for(each, last + 1) for each in following]
    kept = read(store, SPACE, lambda uow: uow.journal.since(last))
    assert found == [kept] * 5


def _wait_for(feed: Feed, last: int) -> list[JournalEntry]:
    found: list[JournalEntry] = []
    while feed.since < last:
        assert feed.wait()
        found += feed.take()
    return found


@pytest.mark.parametrize(
    "message", ["work/relay 99999999999999999999999", "work/relay -1", "nowhere 5", "\u00fc", "x"]
)
def test_a_notice_of_somebody_else_does_no_harm(
    url: str, store: Store, tmp_path: Path, postgres_url: str, message: str
) -> None:
    """Everybody with an account on the server can send one: it wakes somebody at most."""
    with store.wakeups.listen(SPACE, look=HOUR) as listener:
        assert is_rung_from_elsewhere(url, tmp_path, listener)
        with psycopg.connect(postgres_url, autocommit=True) as server:
            server.execute("SELECT pg_notify(%s, %s)", [f"herdbook_{store.uuid}", message])
        while listener.wait(0.2):
            continue
        assert is_rung_from_elsewhere(url, tmp_path, listener)
