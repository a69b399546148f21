"""The process in which queries run: what it may do, and when it ends."""

import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from herdbook.adapters import open_store
from herdbook.adapters.sql_query import ask, sandbox
from herdbook.domain.errors import InvalidValue, StoreUnavailable
from herdbook.ports.engine.store import Store

LONG = "SELECT sleep_ms(600000)"


@pytest.fixture(autouse=True)
def none_left(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each test begins and ends without a process, and none ends because a machine is slow."""
    sandbox._IDLE.end()
    monkeypatch.setattr(sandbox, "_IDLE_SECONDS", 600.0)
    yield
    sandbox._IDLE.end()


@pytest.fixture
def store() -> Iterator[Store]:
    with open_store("memory://") as opened:
        yield opened


def running(parent: int | None = None) -> list[psutil.Process]:
    """The processes that answer queries of a process."""
    children = psutil.Process(parent).children(recursive=True)
    return [each for each in children if any("sandbox_process" in w for w in command(each))]


def command(process: psutil.Process) -> list[str]:
    """How a process was started; nothing when it has ended."""
    try:
        return list(process.cmdline())
    except psutil.Error:
        return []


def until(condition: object, seconds: float = 30) -> None:
    """Wait for something that comes soon."""
    assert callable(condition)
    ends = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends
        time.sleep(0.02)


def test_one_process_answers_query_after_query(store: Store) -> None:
    """To start one takes a tenth of a second and more."""
    ask(store, "SELECT 1")
    (first,) = running()
    with pytest.raises(InvalidValue):
        ask(store, "SELECT nonsense")
    ask(store, "SELECT 2")
    assert [each.pid for each in running()] == [first.pid]


def test_a_process_may_write_nothing_and_has_its_memory(store: Store) -> None:
    """Also where DuckDB had a hole, it could overwrite no file."""
    ask(store, "SELECT 1")
    (process,) = running()
    assert process.rlimit(resource.RLIMIT_FSIZE) == (0, 0)
    assert process.rlimit(resource.RLIMIT_CORE) == (0, 0)
    assert process.rlimit(resource.RLIMIT_AS)[0] <= 4 * 2**30


def test_a_stopped_query_leaves_no_process(store: Store) -> None:
    """It is killed, whatever it is at, and the next query has another."""
    with pytest.raises(InvalidValue, match="was stopped"):
        ask(store, LONG, patience=0.5)
    assert running() == []
    assert ask(store, "SELECT 3").rows == [(3,)]


def test_an_idle_process_ends(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes 60 MB."""
    monkeypatch.setattr(sandbox, "_IDLE_SECONDS", 0.2)
    ask(store, "SELECT 1")
    until(lambda: running() == [])
    assert ask(store, "SELECT 3").rows == [(3,)]


def test_a_process_that_somebody_killed_is_replaced(store: Store) -> None:
    """It had nothing to lose, whether or not it has ended by the time of the next query."""
    ask(store, "SELECT 1")
    (process,) = running()
    process.kill()
    assert ask(store, "SELECT 3").rows == [(3,)]


@pytest.mark.parametrize(
    ("number", "error", "said"),
    [
        (signal.SIGKILL, InvalidValue, "memory"),
        (signal.SIGSEGV, StoreUnavailable, "Segmentation fault"),
    ],
)
def test_a_process_that_dies_over_a_query_is_told_of(
    store: Store, number: int, error: type[Exception], said: str
) -> None:
    """The system ends what takes its last memory; other ends are named."""

    def kill() -> None:
        until(running)
        time.sleep(0.5)
        for each in running():
            each.send_signal(number)

    killer = threading.Thread(target=kill)
    killer.start()
    with pytest.raises(error, match=said):
        ask(store, LONG)
    killer.join()


def test_threads_ask_at_once(store: Store) -> None:
    """Each has a process of its own, and one of them is kept."""
    answers: list[int] = []
    threads = [
        threading.Thread(target=lambda n=n: answers.append(ask(store, f"SELECT {n}").rows[0][0]))
        for n in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [0, 1, 2, 3]
    assert len(running()) == 1


ASKER = """
import sys
from herdbook.adapters import open_store
from herdbook.adapters.sql_query import ask
with open_store("memory://") as store:
    ask(store, "SELECT 1")
    print("asking", flush=True)
    ask(store, sys.argv[1], patience=600)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_a_query_ends_with_the_one_who_asked(number: int) -> None:
    """However that one ended."""
    words = [sys.executable, "-c", ASKER, LONG]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdout=pipe, stderr=subprocess.DEVNULL, text=True) as asker:
        assert asker.stdout is not None
        assert asker.stdout.readline() == "asking\n"
        (process,) = running(asker.pid)
        asker.send_signal(number)
        asker.wait(30)
    until(lambda: not command(process))


def test_a_forked_child_leaves_its_parents_process_alone(store: Store) -> None:
    """It starts one for itself."""
    ask(store, "SELECT 1")
    (process,) = running()
    child = os.fork()
    if child == 0:
        right = ask(store, "SELECT 5").rows == [(5,)]
        sandbox._IDLE.end()
        os._exit(0 if right else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert ask(store, "SELECT 6").rows == [(6,)]
    assert process.pid in [each.pid for each in running()]


def test_nothing_of_the_folder_is_imported(store: Store, tmp_path: Path) -> None:
    """A repository may hold modules under the names of ours and Python's."""
    for name in ("json", "duckdb", "select", "sitecustomize", "herdbook"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'a').close()\n")
    here = Path.cwd()
    os.chdir(tmp_path)
    try:
        assert ask(store, "SELECT 1").rows == [(1,)]
    finally:
        os.chdir(here)
    assert not (tmp_path / "ran").exists()
