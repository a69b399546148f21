"""The lock for adding and removing worktrees, held by one process at a time.

Git itself does not serialise these, and our checks before and after must not be separated from
git's work. The lock is `flock`, which ends with the process that holds it. Its file is never
removed: somebody may wait for it.
"""

import fcntl
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic

from herdbook.domain.errors import StoreBusy, StoreUnavailable

NAME = "herdbook-worktrees.lock"


@contextmanager
def worktree_lock(common_dir: str, patience: float) -> Iterator[None]:
    """Hold the lock of a repository's worktrees, or raise StoreBusy after `patience` seconds."""
    path = os.path.join(common_dir, NAME)
    begun = monotonic()
    try:
        # Reading is enough for flock, so that all who may read the repository share one lock.
        descriptor = os.open(path, os.O_RDONLY | os.O_CREAT | os.O_NOFOLLOW, 0o644)
    except OSError as error:
        reason = f"it is needed as a lock and could not be opened ({error.strerror})"
        raise StoreUnavailable(path, reason) from error
    try:
        arrived = _LockWait(descriptor).acquire(patience)
    except OSError as error:
        os.close(descriptor)
        reason = f"it is needed as a lock and cannot be locked ({error.strerror})"
        raise StoreUnavailable(path, reason) from error
    if not arrived:
        raise StoreBusy(path, round(monotonic() - begun, 1))
    try:
        yield
    finally:
        os.close(descriptor)


class _LockWait:
    """A wait for the lock. A thread does the blocking call, because `flock` cannot be cancelled."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._mutex = threading.Lock()
        self._ended = threading.Event()
        self._wanted = True

    def acquire(self, patience: float) -> bool:
        """Acquire the lock; False after `patience`, and then it is released as soon as it comes."""
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            threading.Thread(target=self._wait, name="herdbook-worktrees", daemon=True).start()
        else:
            return True
        try:
            self._ended.wait(patience)
        finally:
            with self._mutex:
                self._wanted = False
        return self._ended.is_set()

    def _wait(self) -> None:
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        with self._mutex:
            if self._wanted:
                self._ended.set()
            else:
                os.close(self._descriptor)
