"""One DuckDB file, shared by many processes and threads, nothing ever lost.

The file is open only while this process holds the lock beside it: exclusively to write, together
with others to read. Between the threads of a process the same holds: one writes alone, or several
read. After a use the file stays open for a moment (the linger), because the next use usually
follows at once; it is put down as soon as somebody else waits for it.

A fork is safe at any time. What is only kept for the next use is put down before it, and the
transactions of other threads are waited for. A thread that forks inside its own transaction keeps
it; its child leaves the file alone, and opens it anew when it uses it itself.
"""

import atexit
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from herdbook.adapters.duckdb import file_checks, file_lock
from herdbook.adapters.duckdb.errors import leaves_doubt
from herdbook.adapters.duckdb.idle_release import Keeper
from herdbook.adapters.duckdb.shared_file import Attachment, Check, Share, Use
from herdbook.domain.errors import StoreUnavailable

__all__ = ["Attachment", "SharedFile"]

_FORK_PATIENCE = 30.0


class SharedFile:
    """A database file that other processes use at the same time.

    `patience` is how many seconds to wait for others before StoreBusy, `linger` how many to keep
    the file after a use. `check` is asked after a crash, before the file is used: it is given a
    reading attachment with the note `recovered` that was last acknowledged, and raises StoreDamaged
    when that commit is not there. Nothing has been written to the file then.

    Objects for the same file share everything; `close` each of them.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        patience: float = 30.0,
        linger: float = 0.005,
        check: Check | None = None,
    ) -> None:
        self.real_path = file_checks.real_path(path)
        self.patience = patience
        self.linger = linger
        self._check = check
        self._closed = False
        self._share = _PROCESS.join(self.real_path)
        self._pid = os.getpid()

    @contextmanager
    def attached(self, *, write: bool) -> Iterator[Attachment]:
        """Use the file: alone to write, with others to read.

        What is not committed at the end of the block is rolled back. A thread may read while it
        reads, but not nest anything else: that is a RuntimeError, for it would wait for itself.
        Raises StoreBusy, StoreDamaged, StoreUnavailable, StoreFull.
        """
        share, use = self._current(), Use(write=write)
        doubtful = False
        try:
            yield share.attach(use, patience=self.patience, check=self._check)
        except BaseException as error:
            doubtful = leaves_doubt(error)
            raise
        finally:
            try:
                share.leave(use, linger=self.linger, doubtful=doubtful)
            except BaseException:  # interrupted: undo the rest
                share.leave(use, linger=0.0, doubtful=True)
                raise

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Hold the lock alone, with nothing attached in any process: to copy the file, say."""
        with self.lent(write=True):
            yield

    @contextmanager
    def lent(self, *, write: bool) -> Iterator[int]:
        """Hold the lock, with nothing attached here, for somebody else who opens the file.

        Other processes are kept away as by any use, alone to write or with others to read, and the
        other threads of this one wait. Gives the descriptor of the lock: a program that inherits it
        holds the lock on, should this process be killed before it.
        """
        share, use = self._current(), Use(write=True)
        try:
            yield share.lock(use, patience=self.patience, write=write)
        finally:
            try:
                share.leave(use, linger=0.0)
            except BaseException:  # interrupted: undo the rest
                share.leave(use, linger=0.0)
                raise

    def create(self, fill: Check) -> bool:
        """Make the database, filled by `fill`; False when one is there already.

        It appears at its place whole or not at all, whoever is killed when: a process that dies
        over it leaves nothing that could be taken for a damaged one.
        """
        with self.exclusive():
            if not file_checks.require_absence(self.real_path):
                return False
            self._share.create(fill)
            return True

    def close(self) -> None:
        """Put the file down if nobody else in this process has it open."""
        if not self._closed and self._pid == os.getpid():
            _PROCESS.part(self._share)
        self._closed = True

    def _current(self) -> Share:
        if self._closed:
            raise StoreUnavailable(str(self.real_path), "it has been closed here")
        if self._pid != os.getpid():
            self._share = _PROCESS.join(self.real_path)
            self._pid = os.getpid()
        return self._share


class _Process:
    """The files that this process has open, each once."""

    def __init__(self) -> None:
        self._hooked = False
        self._forking = threading.local()
        self._begin()

    def join(self, path: Path) -> Share:
        if self._pid != os.getpid():  # forked by something that does not tell Python
            self._begin_as_child()
        with self._mutex:
            if not self._hooked:
                self._hooked = True
                atexit.register(self._end)
                os.register_at_fork(
                    before=self._rest,
                    after_in_parent=self._wake,
                    after_in_child=self._begin_as_child,
                )
            share = self._shares.get(path)
            if share is None:
                share = self._shares[path] = Share(path, self._keeper)
            share.owners += 1
            return share

    def part(self, share: Share) -> None:
        with self._mutex:
            share.owners -= 1
            if share.owners:
                return
            del self._shares[share.path]
        share.retire()

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._mutex = threading.Lock()
        self._keeper = Keeper()
        self._shares: dict[Path, Share] = {}

    def _end(self) -> None:
        self._keeper.end()
        for share in list(self._shares.values()):
            share.retire()

    def _rest(self) -> None:
        self._forking.shares = list(self._shares.values())
        for share in self._forking.shares:
            share.rest_for_fork(_FORK_PATIENCE)

    def _wake(self) -> None:
        for share in reversed(self._forking.shares):
            share.wake_after_fork()

    def _begin_as_child(self) -> None:
        shares, keeper = self._shares, self._keeper
        self._begin()
        for share in shares.values():
            share.abandon()
        keeper.forget_inherited()
        file_lock.forget_inherited()


_PROCESS = _Process()
