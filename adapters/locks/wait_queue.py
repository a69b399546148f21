"""Waiting for a lock in turn, with a limit to it.

The locks are `flock`, which belongs to an open file and not to a process: a plain open and close of
the same file elsewhere in the process does not drop it, and neither does a forked child that closes
its copy. The system frees it when the last process that has the file open is gone, by `kill -9`
too.
"""

import fcntl
import os
import threading
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Any

_OPEN: set[int] = set()
"""Descriptors of lock files, which a forked child must close without unlocking."""
_opening = threading.Lock()
"""Held over every open and close, so that no fork comes between a file and its note in `_OPEN`."""


_EXCLUSIVE_AT_ONCE = fcntl.LOCK_EX | fcntl.LOCK_NB


class Entered(Enum):
    """How far one came at once towards a lock."""

    NEITHER = "somebody stands in the turnstile"
    TURN = "the turn is in hand, and somebody holds the lock"
    LOCKED = "turn and lock are in hand"


class LockPair:
    """The two open files of a lock: the turnstile, and the lock itself."""

    __slots__ = ("has_room", "hold", "identity", "lock", "pid", "seen_until", "turn")

    def __init__(self, turn: int, lock: int) -> None:
        self.turn = turn
        self.lock = lock
        self.pid = os.getpid()
        self.has_room = False
        self.seen_until = 0.0
        self.hold: Any = None
        status = os.fstat(lock)
        self.identity = status.st_dev, status.st_ino

    def enter(self, operation: int) -> Entered:
        """Take the turn and then the lock, as far as nobody is in the way."""
        entered = Entered.NEITHER
        try:
            fcntl.flock(self.turn, _EXCLUSIVE_AT_ONCE)
            entered = Entered.TURN
            fcntl.flock(self.lock, operation | fcntl.LOCK_NB)
        except BlockingIOError:
            return entered
        return Entered.LOCKED

    def is_at(self, path: Path) -> bool:
        """Whether the open lock file is the one at a path."""
        try:
            there = path.lstat()
        except FileNotFoundError:
            return False
        return (there.st_dev, there.st_ino) == self.identity

    def try_turn(self) -> bool:
        """Stand in the turnstile, if nobody does."""
        return try_lock(self.turn, fcntl.LOCK_EX)

    def pass_turn(self) -> None:
        """Leave the turnstile."""
        fcntl.flock(self.turn, fcntl.LOCK_UN)

    def unlock(self) -> None:
        """Let go of the lock, for this process and every child that inherited the open file."""
        if self.lock in _OPEN:
            fcntl.flock(self.lock, fcntl.LOCK_UN)

    def close(self) -> None:
        """Let go of both and close them; closing again is no error."""
        for descriptor in (self.lock, self.turn):
            if descriptor in _OPEN:
                fcntl.flock(descriptor, fcntl.LOCK_UN)
        for descriptor in (self.lock, self.turn):
            if descriptor in _OPEN:
                close_lock_file(descriptor)


class Wait:
    """One place in the queue for a lock, which can be given up and taken up again.

    A blocked `flock` cannot be called off, so a thread of its own does the blocking: when it gets
    the lock and nobody wants it any more, it gives it straight back.

    `has_turn` tells whether the turn is in hand already. `before_blocking` is called with the turn
    in hand and the lock held by others, `on_arrival` with both in hand.
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
        self._has_turn = has_turn
        self._wanted = True
        self._arrived = False
        self._error: OSError | None = None

    def arrives(self, seconds: float) -> bool:
        """Wait for the lock; whether it came in time. It is waited for further if it did not."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._wait, name="herdbook-lock", daemon=True)
            self._thread.start()
        self._ended.wait(max(seconds, 0.0))
        with self._mutex:
            if self._error is not None:
                raise self._error
            return self._arrived

    def give_up(self) -> bool:
        """Want it no longer for now; False when it has come in the meantime."""
        with self._mutex:
            self._wanted = self._arrived
            if self._thread is None:
                self._end()
            return not self._wanted

    def resume(self) -> bool:
        """Want it again; False when it has come and gone in the meantime."""
        with self._mutex:
            self._wanted = self._running and not self._ended.is_set()
            return self._wanted

    def leave(self) -> None:
        """Want it no longer, whether it has come, is waited for, or could not even be."""
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
        self._ended.set()
        self.pair.close()


def open_lock_file(path: os.PathLike[str], *, create: bool = True) -> int:
    """Open a lock file, made if it may be; a forked child closes its copy by itself."""
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
    """Take a lock if nobody is in the way."""
    try:
        fcntl.flock(descriptor, operation | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def forget_inherited() -> None:
    """In a forked child: close the parent's files; its locks stay, for it has them open too."""
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
