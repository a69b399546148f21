"""A broker of a DuckDB file changes nothing but the time that processes wait for each other.

`HERDBOOK_TEST_BROKER=1` lets every other test of DuckDB reach its store through a broker as well.
"""

import os
import resource
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from itertools import pairwise
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from herdbook.adapters import open_store
from herdbook.adapters.duckdb import rollback_journal
from herdbook.adapters.duckdb.broker import open_file, pending_commits, wire
from herdbook.adapters.duckdb.broker.address import broker_address, connect
from herdbook.adapters.duckdb.broker.pending_commits import GroupFailed, PendingCommits
from herdbook.adapters.duckdb.broker.server import RESERVED_DESCRIPTORS
from herdbook.adapters.duckdb.broker.start import start_broker
from herdbook.adapters.duckdb.file_access import SharedFile
from herdbook.domain.errors import HerdbookError, StoreBusy, StoreFull, StoreUnavailable
from herdbook.domain.plan.model import Task
from herdbook.ports.engine.store import Store, TryAgain
from herdbook.ports.unit_of_work.run import read, run
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork, unit_of_work
from tests.contract.brokers import Brokers, brokers, hello
from tests.contract.children import PROCESSES, Child, apart, at_once
from tests.contract.space import HERE, everything_in


@pytest.fixture
def url(tmp_path: Path) -> str:
    """Where a DuckDB store is that holds one task."""
    place = f"duckdb://{tmp_path / 'store.duckdb'}"
    with open_store(place) as store:
        run(store, HERE, add, "before")
    return place


@pytest.fixture
def started() -> Iterator[Brokers]:
    """Starts brokers that end with the test."""
    with brokers() as made:
        yield made


def add(uow: UnitOfWork, name: str) -> str:
    """Add a task; its id."""
    return uow.tasks.add(Task(name=name)).id


def names_in(url: str) -> list[str]:
    """The names of all tasks."""
    with open_store(url, create=False) as store:
        return sorted(task.name for task in everything_in(store).get("tasks", []))


def is_served(store: Store) -> bool:
    """Whether a process with this store reaches a broker."""
    return store._broker.describe() is not None  # type: ignore[attr-defined]


def path_of(url: str) -> Path:
    """The file of a store."""
    return Path(url.removeprefix("duckdb://"))


def add_many(url: str, who: int, count: int) -> list[str]:
    """Add tasks, each under an operation id; what was acknowledged."""
    with open_store(url, patience=60.0) as store:
        names = [f"task {number} of {who}" for number in range(count)]
        for name in names:
            run(store, HERE, add, name, operation_id=f"add {name}")
    return names


def test_processes_reach_the_store_through_its_broker(url: str, started: Brokers) -> None:
    """They read and write, while the broker holds the lock of the file."""
    broker = started.start(url)
    with open_store(url, patience=0.5) as store:
        assert is_served(store)
        run(store, HERE, add, "through it")
        held = SharedFile(path_of(url), patience=0.5)
        assert f"process {broker.pid} " in str(held.busy(0.0))
        held.close()
    assert apart(names_in, url) == ["before", "through it"]


def test_a_store_that_is_open_goes_on_with_and_without_a_broker(url: str, started: Brokers) -> None:
    """One comes, is killed, and another comes; nobody opens anything again."""
    with open_store(url) as store:
        run(store, HERE, add, "1 direct")
        first = started.start(url)
        run(store, HERE, add, "2 brokered")
        assert is_served(store)
        first.kill()
        first.wait()
        run(store, HERE, add, "3 direct")
        assert not is_served(store)
        started.start(url)
        run(store, HERE, add, "4 brokered")
        assert is_served(store)
    assert names_in(url) == ["1 direct", "2 brokered", "3 direct", "4 brokered", "before"]


def test_a_broker_killed_under_load_loses_and_doubles_nothing(url: str, started: Brokers) -> None:
    """Eight writers with operation ids, and three brokers killed in their midst."""
    broker = started.start(url)
    writers = [Child(add_many, url, who, 15) for who in range(8)]
    for kill in range(3):
        while len(names_in(url)) < 20 * (kill + 1):
            time.sleep(0.01)
        broker.kill()
        broker.wait()
        broker = started.start(url)
    acknowledged = [name for writer in writers for name in writer.result()]
    assert names_in(url) == sorted(["before", *acknowledged])
    with open_store(url) as store:
        numbers = read(store, HERE, lambda uow: [each.seq for each in uow.journal.since(0)])
    assert numbers == list(range(1, len(numbers) + 1))


def test_the_log_of_a_broker_stays_short(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever opens the file after the broker's death reads it first, and everybody waits."""
    log = path_of(url).with_name("store.duckdb.wal")
    monkeypatch.setattr(open_file, "LONG_LOG", 20_000)
    sizes = []
    with open_store(url) as store, start_broker(store):
        for number in range(60):
            run(store, HERE, add, f"{number:02}")
            sizes.append(log.stat().st_size if log.exists() else 0)
            read(store, HERE, lambda uow: uow.tasks.page(limit=5))
        assert sum(size < before for before, size in pairwise(sizes)) > 1
        assert max(sizes) < 60_000
    assert names_in(url) == sorted(["before", *(f"{number:02}" for number in range(60))])


def test_a_log_that_cannot_be_written_into_the_file_only_gets_longer(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For want of room for the copy that undoes it: commits go on."""
    monkeypatch.setattr(open_file, "LONG_LOG", 0)
    failed = []

    def fail(*_: object) -> None:
        failed.append(True)
        raise OSError("no room")

    with open_store(url) as store, start_broker(store):
        monkeypatch.setattr(rollback_journal, "save_blocks", fail)
        for name in "abc":
            run(store, HERE, add, name)
        monkeypatch.undo()
    assert failed
    assert names_in(url) == ["a", "b", "before", "c"]


def test_150_clients_at_once(url: str, started: Brokers) -> None:
    """Each adds two tasks; all are there."""
    started.start(url)
    answers = at_once(url, add_many, [(who, 2) for who in range(150)])
    assert names_in(url) == sorted(["before", *(name for names in answers for name in names)])


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="another process's limit is set")
def test_a_broker_without_descriptors_turns_clients_away(url: str, started: Brokers) -> None:
    """They are not left waiting; those it has go on, and others come in when there is room."""
    path = path_of(url)
    at = broker_address(path.stat())
    broker = started.start(url)
    _, hard = resource.prlimit(broker.pid, resource.RLIMIT_NOFILE)
    last = max(map(int, os.listdir(f"/proc/{broker.pid}/fd")))  # noqa: PTH208 - numbers
    room = last + RESERVED_DESCRIPTORS + 8
    with ExitStack() as connected, open_store(url, create=False) as store:

        def is_let_in() -> bool:
            client = connected.enter_context(connect(at, 10.0))
            try:
                client.sendall(wire.encode_frame(hello(path)))
                return b"ok" in client.recv(1_000)
            except ConnectionError:
                return False

        run(store, HERE, add, "first")
        resource.prlimit(broker.pid, resource.RLIMIT_NOFILE, (room, hard))
        assert 0 < sum(is_let_in() for _ in range(12)) < 12
        run(store, HERE, add, "second")
        resource.prlimit(broker.pid, resource.RLIMIT_NOFILE, (last, hard))
        assert not any(is_let_in() for _ in range(3))
        resource.prlimit(broker.pid, resource.RLIMIT_NOFILE, (room, hard))
        connected.pop_all().close()
        run(store, HERE, add, "third")
    with open_store(url, create=False) as store:
        run(store, HERE, add, "fourth")
        assert is_served(store)
    assert names_in(url) == ["before", "first", "fourth", "second", "third"]


def wait_inside(url: str, inside: Event, how: str) -> str:
    """Write, and wait within the transaction: stopped, or until somebody kills us."""

    def add_and_wait(uow: UnitOfWork) -> str:
        first = not inside.is_set()
        made = add(uow, "of the one inside")
        if first:
            inside.set()
            if how == "stopped":
                os.kill(os.getpid(), signal.SIGSTOP)
            else:
                time.sleep(600)
        return made

    with open_store(url) as store:
        return run(store, HERE, add_and_wait)


def test_a_client_killed_in_a_transaction_leaves_no_trace(url: str, started: Brokers) -> None:
    """And the next writer need not wait for anything."""
    started.start(url)
    inside = PROCESSES.Event()
    child = Child(wait_inside, url, inside, "asleep")
    assert inside.wait(60)
    with open_store(url, patience=0.3) as store:
        with pytest.raises(StoreBusy, match=f"process {child.pid} "):
            run(store, HERE, add, "impatient")
        assert names_in(url) == ["before"]
        child.kill()
        child.wait()
        run(store, HERE, add, "after")
    assert names_in(url) == ["after", "before"]


def test_a_stopped_client_gives_way_and_tries_again(url: str, started: Brokers) -> None:
    """After a bound its transaction is undone; it goes on from the start when it is continued."""
    started.start(url, silence=0.5)
    inside = PROCESSES.Event()
    child = Child(wait_inside, url, inside, "stopped")
    assert inside.wait(60)
    with open_store(url, patience=60.0) as store:
        run(store, HERE, add, "meanwhile")
    assert names_in(url) == ["before", "meanwhile"]
    os.kill(child.pid, signal.SIGCONT)
    child.result()
    assert names_in(url) == ["before", "meanwhile", "of the one inside"]


def test_a_process_that_needs_the_file_itself_gets_its_turn(url: str, started: Brokers) -> None:
    """Such as an older program, or DuckDB's own: the broker releases the file and takes it back."""
    started.start(url)
    writers = [Child(add_many, url, who, 20) for who in range(4)]
    direct = SharedFile(path_of(url), patience=60.0)
    for number in range(5):
        with direct.attach(write=bool(number % 2)) as attachment:
            (rows,) = attachment.cursor.execute(
                "SELECT count(*) FROM herdbook.main.tasks"
            ).fetchall()
            assert rows[0] >= 1
    direct.close()
    for writer in writers:
        writer.result()
    assert len(names_in(url)) == 81


def test_a_file_has_one_broker(url: str, started: Brokers) -> None:
    """A second is refused and told who the first is; the clients do not notice."""
    first = started.start(url)
    with (
        open_store(url) as store,
        pytest.raises(StoreUnavailable, match=f"process {first.pid} is its broker already"),
        start_broker(store),
    ):
        raise AssertionError("there are two brokers")
    assert names_in(url) == ["before"]


def test_a_copy_of_the_file_has_no_part_in_the_broker(
    url: str, started: Brokers, tmp_path: Path
) -> None:
    """It has the same identity, but is another file."""
    copy = tmp_path / "copy.duckdb"
    copy.write_bytes(path_of(url).read_bytes())
    started.start(url)
    with open_store(f"duckdb://{copy}") as store:
        assert not is_served(store)
        run(store, HERE, add, "of the copy")
    assert names_in(url) == ["before"]


@pytest.mark.parametrize("what", ["the folder", "the file"])
def test_a_file_that_took_the_place_of_a_brokers_is_read_and_written(
    tmp_path: Path, what: str
) -> None:
    """Also in the process of the broker, which is of no use any more and says so."""
    place = tmp_path / "here" / "store.duckdb"
    place.parent.mkdir()
    url = f"duckdb://{place}"
    with open_store(url) as store:
        run(store, HERE, add, "before")
    shutil.copytree(place.parent, tmp_path / "early")
    moved = place if what == "the file" else place.parent
    with open_store(url) as store, start_broker(store) as broker:
        run(store, HERE, add, "later")
        assert is_served(store)
        assert broker.is_running()
        moved.rename(tmp_path / "moved")
        (tmp_path / "early" / moved.relative_to(place.parent)).rename(moved)
        assert not broker.is_running()
        assert names_in(url) == ["before"]
        with suppress(StoreUnavailable):
            run(store, HERE, add, "through the broker")
        with open_store(url, create=False) as other:
            run(other, HERE, add, "new")
    assert set(names_in(url)) - {"through the broker"} == {"before", "new"}


def test_a_broker_that_ends_leaves_nothing_behind(url: str) -> None:
    """Neither socket nor lock, and the file is whole by itself."""
    with open_store(url) as store:
        at = Path(broker_address(path_of(url).stat()))
        with start_broker(store):
            assert at.is_socket()
            assert at.stat().st_mode & 0o777 == 0o600
            run(store, HERE, add, "within")
        assert not at.exists()
        assert not at.with_name(f"{at.name}.lock").exists()
    assert not path_of(url).with_name("store.duckdb.wal").exists()


def test_commits_that_cannot_be_made_durable_are_not_acknowledged(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everybody in the group learns it, and nothing of it is there."""
    write = open_file.OpenFile.write
    failures = iter([True])

    def fail_once(self: open_file.OpenFile, *given: Any) -> None:
        if next(failures, False):
            raise StoreFull("here", "no room")
        write(self, *given)

    with open_store(url) as store, start_broker(store):
        monkeypatch.setattr(open_file.OpenFile, "write", fail_once)
        with pytest.raises(StoreFull):
            run(store, HERE, add, "lost")
        run(store, HERE, add, "after")
    assert names_in(url) == ["after", "before"]


def test_commits_that_follow_closely_are_made_durable_together(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twelve writers need fewer commits of DuckDB than there are transactions."""
    write = open_file.OpenFile.write
    commits: list[str] = []

    def count(self: open_file.OpenFile, statements: Any, note: str) -> None:
        commits.append(note)
        write(self, statements, note)

    with open_store(url) as store, start_broker(store):
        monkeypatch.setattr(open_file.OpenFile, "write", count)
        monkeypatch.setattr(pending_commits, "GROUP_SECONDS", 0.5)
        at_once(url, add_many, [(who, 3) for who in range(12)])
    assert len(names_in(url)) == 37
    assert len(commits) < 36


def test_a_commit_without_an_answer_is_repeated_only_with_an_operation_id(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a server: without one, whoever asked decides."""
    with open_store(url) as store, start_broker(store):
        monkeypatch.setattr(PendingCommits, "_start", _vanish)
        with pytest.raises(TryAgain, match="before it confirmed the commit"):
            run(store, HERE, add, "unknown")
    assert names_in(url) == ["before"]


def _vanish(self: PendingCommits) -> None:
    for client in self._committing:
        client.is_closed = True  # type: ignore[attr-defined]
    self._committing = {}
    raise GroupFailed(TryAgain("here", "gone"))


def test_a_transaction_is_not_the_forked_childs(url: str, started: Brokers) -> None:
    """The parent goes on with it, and the child has its own."""
    started.start(url)
    assert apart(fork_inside, url) == ["refused", "added"]
    assert names_in(url) == ["before", "of the child", "of the parent"]


def fork_inside(url: str) -> list[str]:
    """Fork within a transaction; what the child could do with it, and then by itself."""
    reading, writing = os.pipe()
    with open_store(url, patience=30.0) as store:
        with unit_of_work(store, HERE) as uow:
            add(uow, "of the parent")
            child = os.fork()
            if child == 0:
                said = []
                try:
                    add(uow, "of nobody")
                except HerdbookError:
                    said.append("refused")
                run(store, HERE, add, "of the child")
                os.write(writing, " ".join([*said, "added"]).encode())
                os._exit(0)
            uow.commit()
        os.waitpid(child, 0)
    return os.read(reading, 100).decode().split()
