"""The programs of `test_locks.py`: processes that share one lock.

Run as `python lock_process.py ROLE FOLDER ARGUMENT…`.
"""

import os
import signal
import sys
import threading
import time
from pathlib import Path

from herdbook.adapters.locks.file_lock import FileLock
from herdbook.adapters.locks.lock_file import LockFile
from herdbook.domain.errors import StoreBusy


def lock_in(folder: Path) -> FileLock[LockFile]:
    """The lock of these tests."""
    return FileLock(
        folder,
        turn=folder / "the.turn",
        lock=folder / "the.lock",
        kind=LockFile,
        keep_open=True,
    )


def say(word: object) -> None:
    """Tell the test something."""
    print(word, flush=True)  # noqa: T201


def hold(folder: Path) -> None:
    """Hold the lock until somebody writes a line."""
    held = lock_in(folder).take(write=True, patience=60.0)
    say("holds")
    sys.stdin.readline()
    held.release()


def count(folder: Path, seconds: str) -> None:
    """Read a number and write the next one under the lock, as often as there is time for."""
    lock, number, mine = lock_in(folder), folder / "number", 0
    say("ready")
    sys.stdin.readline()
    end = time.monotonic() + float(seconds)
    while time.monotonic() < end:
        held = lock.take(write=True, patience=60.0)
        number.write_text(str(int(number.read_text()) + 1))
        held.release()
        mine += 1
    say(mine)


def wait(folder: Path) -> None:
    """Wait for the lock with all patience."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    say("waits")
    try:
        lock_in(folder).take(write=True, patience=3_600.0).release()
    except KeyboardInterrupt:
        say("interrupted")
    else:
        say("held")


def fork_holding(folder: Path) -> None:
    """Fork while holding the lock; the child stays, and this process is killed."""
    lock_in(folder).take(write=True, patience=60.0)
    child = os.fork()
    if child == 0:
        say(os.getpid())
        sys.stdin.readline()
        os._exit(0)
    time.sleep(3_600.0)


def fork_beside_waiter(folder: Path) -> None:
    """Fork while a thread waits for the lock; both go on, and each gets the lock in turn."""
    lock = lock_in(folder)
    arrived = threading.Event()

    def take() -> None:
        lock.take(write=True, patience=60.0).release()
        arrived.set()

    thread = threading.Thread(target=take)
    thread.start()
    time.sleep(0.3)
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        # The child's copy of a lock that its parent waits for: it must not wait for itself.
        lock_in(folder).take(write=True, patience=60.0).release()
        os._exit(0)
    say("forked")
    thread.join()
    _, status = os.waitpid(child, 0)
    say(f"{arrived.is_set()} {os.waitstatus_to_exitcode(status)}")


def fork_inside(folder: Path) -> None:
    """Fork while holding; the child unwinds its parent's stack and must not let go of the lock."""
    held = lock_in(folder).take(write=True, patience=60.0)
    child = os.fork()
    if child == 0:
        held.release()
        os._exit(0)
    os.waitpid(child, 0)
    try:
        lock_in(folder).take(write=True, patience=0.2)
    except StoreBusy:
        say("still held")
    held.release()
    lock_in(folder).take(write=True, patience=60.0).release()
    say("free")


ROLES = {
    role.__name__: role
    for role in (hold, count, wait, fork_holding, fork_beside_waiter, fork_inside)
}

if __name__ == "__main__":
    ROLES[sys.argv[1]](Path(sys.argv[2]), *sys.argv[3:])
