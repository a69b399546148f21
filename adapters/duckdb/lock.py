"""The lock beside a database file: shared for reading, exclusive for writing, first come first.

Two files stand beside the database and are never removed:

`.turn` is a turnstile. Whoever wants the lock takes it first and keeps it while waiting, so readers
do not overtake a writer that waits, and a holder can see that somebody waits.
`.lock` is the lock itself, and holds what `lockfile` writes: among it, where to ring the holders,
so that one which only keeps the file for its next use lets go at once.

The locks are `flock`, which belongs to an open file and not to a process: a plain open and close of
the same file elsewhere in the process does not drop it, and neither does a forked child that closes
its copy.
"""

import fcntl
import logging
import os
import threading
from errno import ELOOP, EROFS
from pathlib import Path
from time import monotonic

from herdbook.adapters.duckdb.bell import ring
from herdbook.adapters.duckdb.errors import translating
from herdbook.adapters.duckdb.lockfile import LockFile, holder_of
from herdbook.domain.errors import StoreBusy, StoreUnavailable

_LOG = logging.getLogger(__name__)

_OURS: set[int] = set()  # open descriptors, which a forked child must close without unlocking


class Hold:
    """The lock, held by this process until `release`."""

    def __init__(self, *, turn: int, lock: int, write: bool) -> None:
        self._turn = turn
        self.descriptor = lock
        self.write = write
        self.file = LockFile(lock)

    def somebody_waits(self) -> bool:
        """Whether another process stands in the turnstile."""
        if not _try(self._turn, fcntl.LOCK_EX):
            return True
        fcntl.flock(self._turn, fcntl.LOCK_UN)
        return False

    def is_at(self, path: Path) -> bool:
        """Somebody may have put another lock file there while we waited for this one."""
        try:
            there = path.lstat()
        except FileNotFoundError:
            return False
        return os.path.samestat(there, os.fstat(self.descriptor))

    def release(self) -> None:
        """Let go, for this process and for every child that inherited the open files."""
        try:
            self.file.unsign(write=self.write)
        except OSError as error:
            _LOG.warning("could not strike our name out of a lock file: %s", error)
        finally:
            _put_back(self.descriptor, self._turn)


class Sidecar:
    """The lock of one database file, as this process sees it. One thread at a time may take it."""

    def __init__(self, database: Path) -> None:
        self._database = database
        self._turn = database.with_name(f"{database.name}.turn")
        self._lock = database.with_name(f"{database.name}.lock")
        self._given_up: dict[bool, _Wait] = {}

    def take(self, *, write: bool, patience: float, bell: str | None = None) -> Hold:
        """Hold the lock, or raise StoreBusy when it is not to be had within `patience` seconds.

        `bell` is where to ring this process when somebody waits for it to let go.
        """
        begun = monotonic()
        with translating(str(self._database)):
            while True:
                hold = self._take(write=write, seconds=begun + patience - monotonic())
                if hold is None:
                    raise self.busy(monotonic() - begun)
                try:
                    if hold.is_at(self._lock):
                        hold.file.sign(write=write, bell=bell)
                        return hold
                except BaseException:
                    hold.release()
                    raise
                hold.release()

    def busy(self, waited: float) -> StoreBusy:
        """The error that names who holds the lock."""
        holder = holder_of(self._lock)
        place = str(self._database)
        if holder is None:
            return StoreBusy(place, round(waited, 1))
        return StoreBusy(place, round(waited, 1), holder.described(), holder.since)

    def _take(self, *, write: bool, seconds: float) -> Hold | None:
        wait = self._given_up.pop(write, None)
        if wait is None or not wait.go_on():
            wait = self._queue(write=write)
        try:
            if not wait.arrives(seconds):
                self._given_up[write] = wait
                return None
            return Hold(turn=wait.turn, lock=wait.lock, write=write)
        except BaseException:
            wait.leave()
            raise

    def _queue(self, *, write: bool) -> "_Wait":
        turn = self._open(self._turn)
        try:
            lock = self._open(self._lock)
        except BaseException:
            _close(turn)
            raise
        return _Wait(turn, lock, fcntl.LOCK_EX if write else fcntl.LOCK_SH)

    def _open(self, path: Path) -> int:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        except (PermissionError, IsADirectoryError) as error:
            raise self._no_lock(path, error) from error
        except OSError as error:
            if error.errno not in {EROFS, ELOOP}:
                raise
            raise self._no_lock(path, error) from error
        _OURS.add(descriptor)
        return descriptor

    def _no_lock(self, path: Path, error: OSError) -> StoreUnavailable:
        reason = f"it needs {path.name} beside it as a lock, which cannot be opened"
        return StoreUnavailable(str(self._database), f"{reason} ({error.strerror})")


class _Wait:
    """One place in the queue for the lock, which can be given up and taken up again.

    A blocked `flock` cannot be called off, so a thread of its own does the blocking: when it gets
    the lock and nobody wants it any more, it gives it straight back.
    """

    def __init__(self, turn: int, lock: int, operation: int) -> None:
        self.turn = turn
        self.lock = lock
        self._operation = operation
        self._mutex = threading.Lock()
        self._thread: threading.Thread | None = None
        self._running = False
        self._ended = threading.Event()
        self._has_turn = False
        self._wanted = True
        self._arrived = False
        self._error: OSError | None = None

    def arrives(self, seconds: float) -> bool:
        """Wait for the lock; False when it did not come in time and is not wanted any more."""
        if self._thread is None:
            if self._at_once():
                return True
            if seconds <= 0:
                self.leave()
                return False
            self._thread = threading.Thread(target=self._wait, name="herdbook-lock", daemon=True)
            self._thread.start()
        self._ended.wait(max(seconds, 0.0))
        with self._mutex:
            if self._error is not None:
                raise self._error
            self._wanted = self._arrived
            return self._arrived

    def go_on(self) -> bool:
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

    def _at_once(self) -> bool:
        self._has_turn = _try(self.turn, fcntl.LOCK_EX)
        if not self._has_turn or not _try(self.lock, self._operation):
            return False
        self._pass_the_turn()
        self._arrived = True
        self._ended.set()
        return True

    def _wait(self) -> None:
        with self._mutex:
            if self._ended.is_set():
                return
            self._running = True
        try:
            if not self._has_turn:
                fcntl.flock(self.turn, fcntl.LOCK_EX)
            with self._mutex:
                if not self._wanted:
                    self._end()
                    return
            if not _try(self.lock, self._operation):
                ring(each.bell for each in LockFile(self.lock).holders() if each.bell)
                fcntl.flock(self.lock, self._operation)
            self._pass_the_turn()
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
        _put_back(self.lock, self.turn)

    def _pass_the_turn(self) -> None:
        LockFile(self.lock).make_room()
        fcntl.flock(self.turn, fcntl.LOCK_UN)


def forget_inherited() -> None:
    """In a forked child: close the parent's files; its locks stay, for it has them open too."""
    while _OURS:
        os.close(_OURS.pop())


def _try(descriptor: int, operation: int) -> bool:
    try:
        fcntl.flock(descriptor, operation | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _close(descriptor: int) -> None:
    _OURS.discard(descriptor)
    os.close(descriptor)


def _put_back(*descriptors: int) -> None:
    for descriptor in descriptors:
        if descriptor in _OURS:
            fcntl.flock(descriptor, fcntl.LOCK_UN)
    for descriptor in descriptors:
        if descriptor in _OURS:
            _close(descriptor)
