"""One environment per folder: open for reading until the first write, and shared by threads."""

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import lmdb
import pytest

from herdbook.adapters import open_store
from herdbook.adapters.lmdb.data_file_guard import DataFileGuard
from herdbook.adapters.lmdb.files import WRITER_LOCK
from herdbook.adapters.lmdb.store import LmdbStore
from herdbook.domain.errors import NotFound, StoreBusy
from herdbook.domain.plan.model import Task
from herdbook.ports.engine.store import Store
from herdbook.ports.unit_of_work.run import read, run
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from tests.contract.space import HERE, everything_in

LIMIT = 60.0


def add(store: Store, name: str) -> None:
    """Add a task."""
    run(store, HERE, lambda uow: uow.tasks.add(Task(name=name)))


def names_in(store: Store) -> list[str]:
    """The names of all tasks."""
    return sorted(task.name for task in everything_in(store)["tasks"])


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A store with a task in it, which nobody has open."""
    place = f"lmdb://{tmp_path / 'store'}"
    with open_store(place) as store:
        add(store, "before")
    return place


def is_writable(store: Store) -> bool:
    """Whether this process has the folder open for writing."""
    assert isinstance(store, LmdbStore)
    return store._environment().open_databases.writable


def test_who_only_reads_never_takes_the_writers_place(url: str, tmp_path: Path) -> None:
    """Neither to open a store, nor to read, nor to look through all of it."""
    lock = tmp_path / "store" / WRITER_LOCK
    before = lock.stat().st_mtime_ns
    with open_store(url, create=False) as store, open_store(url) as other:
        assert names_in(store) == names_in(other) == ["before"]
        assert store.spaces() == [HERE]
        assert not is_writable(store)
        assert lock.stat().st_mtime_ns == before
        add(other, "after")
        assert is_writable(store)
        assert names_in(store) == ["after", "before"]


def test_the_first_write_waits_for_readers_of_this_process(url: str) -> None:
    """As long as its patience lasts; then it says who is in the way, and the reader goes on."""
    reading, over = threading.Event(), threading.Event()

    def read_for_long(store: Store) -> int:
        with store.transaction(HERE, write=False) as session:
            reading.set()
            assert over.wait(LIMIT)
            return session.head.seq if session.head else 0

    with open_store(url, patience=0.3) as store, ThreadPoolExecutor(1) as pool:
        last = pool.submit(read_for_long, store)
        assert reading.wait(LIMIT)
        with pytest.raises(StoreBusy, match="a thread of this process, which reads"):
            add(store, "too early")
        over.set()
        assert last.result(LIMIT) > 0
        add(store, "later")
        assert names_in(store) == ["before", "later"]


def test_a_thread_that_reads_does_not_wait_for_itself(url: str) -> None:
    """To begin the first write inside of a read is a mistake, and told as one."""
    with open_store(url) as store:
        with (
            store.transaction(HERE, write=False),
            pytest.raises(RuntimeError, match="transactions do not nest"),
        ):
            add(store, "inside")
        add(store, "outside")


@pytest.mark.parametrize("_", range(5))
def test_many_threads_begin_at_once(url: str, _: int) -> None:
    """Readers and writers, in a process that has not written yet."""
    barrier = threading.Barrier(12)

    def work(number: int) -> int:
        with open_store(url) as store:
            barrier.wait(LIMIT)
            for turn in range(5):
                if number % 3 == 0:
                    add(store, f"{number} {turn}")
                else:
                    assert "before" in names_in(store)
        return number

    with ThreadPoolExecutor(12) as pool:
        assert sorted(pool.map(work, range(12))) == list(range(12))
    with open_store(url) as store:
        assert len(names_in(store)) == 1 + 4 * 5


def test_a_use_case_that_changes_nothing_leaves_the_files_own_counter_alone(
    url: str, tmp_path: Path
) -> None:
    """LMDB counts the transactions that it has committed, and none is added."""

    def committed() -> int:
        with lmdb.open(str(tmp_path / "store"), readonly=True, lock=False) as raw:
            return int(raw.info()["last_txnid"])

    before = committed()
    with open_store(url) as store:
        assert run(store, HERE, lambda uow: len(uow.tasks.page())) == 1
    assert committed() == before
    with open_store(url) as store:
        add(store, "another")
    assert committed() > before


def test_a_store_is_not_taken_for_another_while_a_thread_opens_it(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second thread comes when LMDB has the file open and nobody watches it yet."""
    remember = DataFileGuard.remember_file
    with ThreadPoolExecutor(1) as pool:
        visits: list[Future[Store]] = []

        def meet(guard: DataFileGuard) -> None:
            monkeypatch.setattr(DataFileGuard, "remember_file", remember)
            visits.append(pool.submit(open_store, url, create=False))
            threading.Event().wait(0.2)  # it waits for this thread, or it has gone wrong by now
            remember(guard)

        monkeypatch.setattr(DataFileGuard, "remember_file", meet)
        with open_store(url, create=False) as store:
            assert names_in(store) == ["before"]
            (visit,) = visits
            with visit.result(LIMIT) as other:
                assert names_in(other) == ["before"]


def test_a_transaction_that_is_over_holds_no_slot_among_the_readers(url: str) -> None:
    """Whoever still refers to it, and without the garbage collector, which a command switches off.

    Slots are shared by all processes: who follows the journal for hours must not use them up.
    """
    kept: list[object] = []

    def keep(uow: UnitOfWork) -> None:
        kept.append(uow)
        uow.tasks.page()

    def fail(uow: UnitOfWork) -> None:
        kept.append(uow)
        uow.tasks.get("tsk_nobody")

    with open_store(url) as store:
        assert isinstance(store, LmdbStore)
        for _ in range(20):
            read(store, HERE, keep)
            with pytest.raises(NotFound) as refused:
                read(store, HERE, fail)
            kept.append(refused)
        env = store._environment().open_databases.env
        assert env.info()["num_readers"] <= 2  # the one in use, and a spare one
