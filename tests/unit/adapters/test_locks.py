"""The lock between processes: one at a time, in turn, with a limit, whatever becomes of them."""

import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from herdbook.adapters.locks.file_lock import FileLock
from herdbook.adapters.locks.lock_file import LockFile, holder_of
from herdbook.domain.errors import StoreBusy, StoreUnavailable
from tests.unit.adapters.lock_process import lock_in

PROGRAM = Path(__file__).with_name("lock_process.py")
LIMIT = 60.0
"""Nothing here takes a hundredth of it, unless it hangs."""

Process = subprocess.Popen[str]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Process]]:
    """Starts processes on the lock of this test, which end with it."""
    with ExitStack() as stack:

        def begin(role: str, *arguments: object) -> Process:
            process = subprocess.Popen(
                [sys.executable, str(PROGRAM), role, str(tmp_path), *map(str, arguments)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            stack.enter_context(process)
            stack.callback(process.kill)
            return process

        yield begin


def hear(process: Process) -> str:
    """The next thing that a process says."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


def tell(process: Process) -> None:
    """Let a process go on."""
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def test_who_holds_it_is_named_when_patience_ends(
    start: Callable[..., Process], tmp_path: Path
) -> None:
    """By number and program, and since when."""
    begin = datetime.now(UTC)
    holder = start("hold")
    assert hear(holder) == "holds"
    with pytest.raises(StoreBusy) as refusal:
        lock_in(tmp_path).take(write=True, patience=0.2)
    assert refusal.value.holder == f"process {holder.pid} (lock_process.py)"
    assert refusal.value.since is not None
    assert abs(refusal.value.since - begin) < timedelta(minutes=1)
    assert refusal.value.waited >= 0.2
    assert lock_in(tmp_path).try_take(write=True) is None
    assert lock_in(tmp_path).is_held()
    tell(holder)
    assert holder.wait(LIMIT) == 0
    assert not lock_in(tmp_path).is_held()


def test_who_is_killed_lets_go_at_once(start: Callable[..., Process], tmp_path: Path) -> None:
    """By `kill -9`, with somebody waiting."""
    holder = start("hold")
    assert hear(holder) == "holds"
    waiter = start("wait")
    assert hear(waiter) == "waits"
    time.sleep(0.2)
    holder.kill()
    assert hear(waiter) == "held"
    lock_in(tmp_path).take(write=True, patience=LIMIT).release()


def test_who_is_killed_while_it_waits_is_in_nobodys_way(
    start: Callable[..., Process], tmp_path: Path
) -> None:
    """The one at the turnstile, too."""
    holder = start("hold")
    assert hear(holder) == "holds"
    waiters = [start("wait") for _ in range(3)]
    assert [hear(each) for each in waiters] == ["waits"] * 3
    time.sleep(0.3)
    for each in waiters:
        each.kill()
        each.wait(LIMIT)
    tell(holder)
    lock_in(tmp_path).take(write=True, patience=LIMIT).release()


def test_who_is_stopped_while_it_waits_stops_nobody(
    start: Callable[..., Process], tmp_path: Path
) -> None:
    """The one whose turn it is does not come, and the lock is free: others look past the queue."""
    holder = start("hold")
    assert hear(holder) == "holds"
    waiter = start("wait")
    assert hear(waiter) == "waits"
    time.sleep(0.3)
    waiter.send_signal(signal.SIGSTOP)
    lock, threads = lock_in(tmp_path), threading.active_count()
    with pytest.raises(StoreBusy) as refusal:
        lock.take(write=True, patience=1.2)
    assert refusal.value.holder == f"process {holder.pid} (lock_process.py)"
    tell(holder)
    for write in (True, False, True):
        lock.take(write=write, patience=LIMIT).release()
    assert threading.active_count() <= threads + 2
    waiter.send_signal(signal.SIGCONT)
    assert hear(waiter) == "held"
    lock.take(write=True, patience=LIMIT).release()
    lock.close()


def test_an_interrupt_ends_the_wait(start: Callable[..., Process]) -> None:
    """A process that would wait for an hour ends at Ctrl-C."""
    holder = start("hold")
    assert hear(holder) == "holds"
    waiter = start("wait")
    assert hear(waiter) == "waits"
    time.sleep(0.3)
    waiter.send_signal(signal.SIGINT)
    assert hear(waiter) == "interrupted"
    assert waiter.wait(LIMIT) == 0


def test_processes_in_a_loop_get_it_in_turn(start: Callable[..., Process], tmp_path: Path) -> None:
    """Eight that want it all the time: none starves, and no count is lost."""
    (tmp_path / "number").write_text("0")
    processes = [start("count", 3) for _ in range(8)]
    assert [hear(each) for each in processes] == ["ready"] * 8
    for each in processes:
        tell(each)
    counts = [int(hear(each)) for each in processes]
    assert sum(counts) == int((tmp_path / "number").read_text())
    # Without a turnstile one of them has it nearly all the time.
    assert min(counts) > sum(counts) / 8 / 4, counts


def test_a_killed_parent_lets_go_though_its_child_lives(
    start: Callable[..., Process], tmp_path: Path
) -> None:
    """A forked child has the lock's files no longer open."""
    parent = start("fork_holding")
    child = int(hear(parent))
    parent.kill()
    parent.wait(LIMIT)
    os.kill(child, 0)
    lock_in(tmp_path).take(write=True, patience=LIMIT).release()
    os.kill(child, signal.SIGKILL)


def test_a_fork_beside_a_thread_that_waits_harms_nobody(start: Callable[..., Process]) -> None:
    """Parent and child both get the lock when it comes free."""
    holder = start("hold")
    assert hear(holder) == "holds"
    process = start("fork_beside_waiter")
    assert hear(process) == "forked"
    tell(holder)
    assert hear(process) == "True 0"


def test_a_child_does_not_let_go_of_its_parents_lock(start: Callable[..., Process]) -> None:
    """Though it unwinds the parent's stack."""
    process = start("fork_inside")
    assert [hear(process), hear(process)] == ["still held", "free"]


def test_no_thread_is_started_where_nobody_is_in_the_way(tmp_path: Path) -> None:
    """That would cost a transaction more than all the rest of it."""
    lock, before = lock_in(tmp_path), threading.active_count()
    for _ in range(10):
        held = lock.take(write=True, patience=LIMIT)
        assert threading.active_count() == before
        held.release()
    lock.close()


def test_a_replaced_lock_file_is_noticed(tmp_path: Path) -> None:
    """Who kept the old one open takes the new one instead."""
    lock = lock_in(tmp_path)
    lock.take(write=True, patience=LIMIT).release()
    (tmp_path / "the.lock").rename(tmp_path / "gone")
    time.sleep(1.1)  # what was there a moment ago is taken to be there still
    held = lock.take(write=True, patience=LIMIT)
    assert held.is_at(tmp_path / "the.lock")
    held.release()
    lock.close()


@pytest.mark.parametrize("name", ["the.lock", "the.turn"])
@pytest.mark.parametrize("kind", ["link", "dangling link", "hard link", "pipe", "folder"])
def test_what_is_no_lock_file_is_refused(name: str, kind: str, tmp_path: Path) -> None:
    """And what a link leads to stays as it was."""
    victim = tmp_path / "victim"
    if kind != "dangling link":
        victim.write_text("somebody's")
    path = tmp_path / name
    match kind:
        case "hard link":
            path.hardlink_to(victim)
        case "pipe":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case _:
            path.symlink_to(victim)
    with pytest.raises(StoreUnavailable, match=re.escape(f"{name} ")):
        lock_in(tmp_path).take(write=True, patience=1.0)
    assert victim.exists() == (kind != "dangling link")
    assert not victim.exists() or victim.read_text() == "somebody's"


def test_a_lock_file_of_somebody_else_names_nobody(tmp_path: Path) -> None:
    """Whatever stands in it, it is neither believed nor repeated."""
    chance = random.Random(5)
    path = tmp_path / "the.lock"
    file = path.open("w+b")
    lines = LockFile(file.fileno())
    for fields in (
        {"pid": -1, "command": "x", "since": 0, "bell": None},
        {"pid": 1, "command": 7, "since": 0, "bell": None},
        {"pid": 1, "command": "x", "since": 10**30, "bell": None},
        {"pid": 10**30, "command": "x", "since": 1, "bell": None, "doing": 3},
        {"pid": 1, "command": "\x1b[31m; rm -rf ~", "since": 1, "bell": 1, "doing": "\x07\n"},
    ):
        lines.preallocate()
        lines.write(LockFile.writer, fields)
        holder = holder_of(path)
        assert holder is None or re.fullmatch(
            r"process \d+ \([\w.?-]+\)(, which [\w ?]*)?", holder.describe()
        )
    for _ in range(50):
        path.write_bytes(chance.randbytes(chance.randrange(2_000)))
        assert holder_of(path) is None
    file.close()


def test_kinds_of_holders_share_or_exclude(tmp_path: Path) -> None:
    """Readers hold it together, a writer alone."""
    one, other = (
        lock_in(tmp_path),
        FileLock(tmp_path, turn=tmp_path / "the.turn", lock=tmp_path / "the.lock", kind=LockFile),
    )
    reader = one.take(write=False, patience=LIMIT)
    another = other.take(write=False, patience=LIMIT)
    assert other.try_take(write=True) is None
    reader.release()
    another.release()
    writer = one.take(write=True, patience=LIMIT)
    assert other.try_take(write=False) is None
    writer.release()
    one.close()


def test_who_waits_prepares_when_it_is_next(tmp_path: Path) -> None:
    """One at a time, while another holds the lock; who need not wait prepares nothing."""
    holder = lock_in(tmp_path).take(write=True, patience=LIMIT, prepare=pytest.fail)
    prepared = [threading.Event() for _ in range(3)]
    held, let_go = threading.Semaphore(0), threading.Semaphore(0)

    def wait(number: int) -> None:
        lock = lock_in(tmp_path)
        hold = lock.take(write=True, patience=LIMIT, prepare=prepared[number].set)
        held.release()
        let_go.acquire()
        hold.release()

    threads = [threading.Thread(target=wait, args=(number,)) for number in range(3)]
    for each in threads:
        each.start()
    while not any(each.is_set() for each in prepared):
        time.sleep(0.001)
    for number in range(1, 4):
        time.sleep(0.05)
        assert sum(each.is_set() for each in prepared) == number
        if number == 1:
            holder.release()
        else:
            let_go.release()
        held.acquire()
        while number < 3 and sum(each.is_set() for each in prepared) == number:
            time.sleep(0.001)
    let_go.release()
    for each in threads:
        each.join(LIMIT)


def test_who_cannot_prepare_is_in_nobodys_way(tmp_path: Path) -> None:
    """Its error comes through, and the others go on."""
    holder = lock_in(tmp_path).take(write=True, patience=LIMIT)

    def fail() -> None:
        raise ArithmeticError

    with pytest.raises(ArithmeticError):
        lock_in(tmp_path).take(write=True, patience=LIMIT, prepare=fail)
    holder.release()
    lock_in(tmp_path).take(write=True, patience=LIMIT).release()
