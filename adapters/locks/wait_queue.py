"""Waits for a lock in turn, with a time limit.

The locks are `flock`, which belongs to an open file and not to a process: a plain open and close of
the same file elsewhere in the process does not drop it, and neither does a forked child that closes
its copy. The system releases it when the last process that has the file open is gone, also by `kill
-9`.
"""

import fcntl
import os
import threading
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Any

_OPEN: set[int] = set()
"""Descriptors of open lock files, which a forked child must close without unlocking."""
_opening = threading.Lock()
"""Held during every open and close: no fork may come between a file and its entry in `_OPEN`."""


_EXCLUSIVE_AT_ONCE = fcntl.LOCK_EX | fcntl.LOCK_NB


class EnterResult(Enum):
    """What an attempt to take turn and lock without waiting has reached."""

    NEITHER = "somebody else has the turn"
    TURN = "the turn is taken, and somebody holds the lock"
    LOCKED = "turn and lock are taken"


class LockPair:
    """The two open files of a lock: the turn file and the lock file."""

    __slots__ = ("hold", "identity", "is_preallocated", "lock", "pid", "seen_until", "turn")

    def __init__(self, turn: int, lock: int) -> None:
        self.turn = turn
        self.lock = lock
        self.pid = os.getpid()
        self.is_preallocated = False
        self.seen_until = 0.0
        self.hold: Any = None
        status = os.fstat(lock)
        self.identity = status.st_dev, status.st_ino

    def enter(self, operation: int) -> EnterResult:
        """Take the turn and then the lock, without waiting for either."""
        entered = EnterResult.NEITHER
        try:
            fcntl.flock(self.turn, _EXCLUSIVE_AT_ONCE)
            entered = EnterResult.TURN
            fcntl.flock(self.lock, operation | fcntl.LOCK_NB)
        except BlockingIOError:
            return entered
        return EnterResult.LOCKED

    def is_at(self, path: Path) -> bool:
        """Whether the open lock file is the one at a path."""
        try:
            there = path.lstat()
        except FileNotFoundError:
            return False
        return (there.st_dev, there.st_ino) == self.identity

    def try_turn(self) -> bool:
        """Take the turn if nobody has it."""
        return try_lock(self.turn, fcntl.LOCK_EX)

    def pass_turn(self) -> None:
        """Release the turn."""
        fcntl.flock(self.turn, fcntl.LOCK_UN)

    def unlock(self) -> None:
        """Release the lock, for this process and every child that inherited the open file."""
        if self.lock in _OPEN:
            fcntl.flock(self.lock, fcntl.LOCK_UN)

    def close(self) -> None:
        """Release and close both files; closing again is no error."""
        for descriptor in (self.lock, self.turn):
            if descriptor in _OPEN:
                fcntl.flock(descriptor, fcntl.LOCK_UN)
        for descriptor in (self.lock, self.turn):
            if descriptor in _OPEN:
                close_lock_file(descriptor)


class Wait:
    """One place in the queue for a lock, which can be given up and resumed.

    A blocked `flock` cannot be cancelled, so a thread of its own blocks: if it gets the lock when
    nobody wants it any more, it releases it at once.

    `has_turn` says whether the turn is already taken. `before_blocking` is called with the turn
    taken and the lock held by others, `on_arrival` with both taken.
    """

    def __init__(
        self,
        pair: LockPair,
        operation: int,
        *,
        has_turn: bool,
        before_blocking: Callable[[LockPair], None],
        on_arrival: Callable[[LockPair], None],
    ) -> None:
        self.pair = pair
        self._operation = operation
        self._before_blocking = before_blocking
        self._on_arrival = on_arrival
        self._mutex = threading.Lock()
        self._thread: threading.Thread | None = None
        self._running = False
        self._ended = threading.Event()
        self._turn_came = threading.Event()
        self._has_turn = has_turn
        self._wanted = True
        self._arrived = False
        self._error: OSError | None = None

    def wait_for_lock(self, seconds: float) -> bool:
        """Wait for the lock; whether it came in time. The thread goes on waiting if it did not."""
        self._start_thread()
        self._ended.wait(max(seconds, 0.0))
        with self._mutex:
            if self._error is not None:
                raise self._error
            return self._arrived

    def wait_for_turn(self, seconds: float) -> bool:
        """Wait until nobody is ahead but who holds the lock; whether it came to that in time."""
        self._start_thread()
        return self._turn_came.wait(max(seconds, 0.0))

    def _start_thread(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._wait, name="herdbook-lock", daemon=True)
            self._thread.start()

    def give_up(self) -> bool:
        """Stop wanting the lock for now; False if it has come in the meantime."""
        with self._mutex:
            self._wanted = self._arrived
            if self._thread is None:
                self._end()
            return not self._wanted

    def resume(self) -> bool:
        """Want the lock again; False if it has come and gone in the meantime."""
        with self._mutex:
            self._wanted = self._running and not self._ended.is_set()
            return self._wanted

    def leave(self) -> None:
        """Stop wanting the lock, whether it has come, is waited for, or the wait never started."""
        with self._mutex:
            self._wanted = False
            if self._arrived or not (self._running or self._ended.is_set()):
                self._end()

    def _wait(self) -> None:
        with self._mutex:
            if self._ended.is_set():
                return
            self._running = True
        try:
            if not self._has_turn:
                fcntl.flock(self.pair.turn, fcntl.LOCK_EX)
            self._turn_came.set()
            with self._mutex:
                if not self._wanted:
                    self._end()
                    return
            if not try_lock(self.pair.lock, self._operation):
                self._before_blocking(self.pair)
                fcntl.flock(self.pair.lock, self._operation)
            self._on_arrival(self.pair)
            self.pair.pass_turn()
        except OSError as error:
            self._error = error
        with self._mutex:
            if self._wanted and self._error is None:
                self._arrived = True
                self._ended.set()
            else:
                self._end()

    def _end(self) -> None:
        self._arrived = False
        self._turn_came.set()
        self._ended.set()
        self.pair.close()


def open_lock_file(path: os.PathLike[str], *, create: bool = True) -> int:
    """Open a lock file, created if `create` is set; a forked child closes its copy itself."""
    flags = os.O_RDWR | os.O_NOFOLLOW | (os.O_CREAT if create else 0)
    with _opening:
        descriptor = os.open(path, flags, 0o600)
        _OPEN.add(descriptor)
        return descriptor


def close_lock_file(descriptor: int) -> None:
    """Close a lock file."""
    with _opening:
        _OPEN.discard(descriptor)
        os.close(descriptor)


def try_lock(descriptor: int, operation: int) -> bool:
    """Take a lock without waiting; whether it was taken."""
    try:
        fcntl.flock(descriptor, operation | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def forget_inherited() -> None:
    """In a forked child: close the parent's files. Its locks stay, because it has them open too."""
    while _OPEN:
        os.close(_OPEN.pop())


def _after_fork_in_child() -> None:
    forget_inherited()
    _opening.release()


os.register_at_fork(
    before=_opening.acquire,
    after_in_parent=_opening.release,
    after_in_child=_after_fork_in_child,
)
