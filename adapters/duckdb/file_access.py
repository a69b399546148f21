"""One DuckDB file, shared by many processes and threads without losing a commit.

The file is open only while this process holds the lock beside it: exclusively to write, together
with others to read. The same holds between the threads of a process: one writes alone, or several
read. After a use the file stays open for a moment (`linger`), because the next use usually follows
at once; it is closed as soon as another process waits for it.

A fork is safe at any time. A file that is only kept for the next use is closed before the fork, and
the transactions of other threads are waited for. A thread that forks inside its own transaction
keeps it; the child leaves that file alone and opens it again for its own first use.
"""

import atexit
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from herdbook.adapters.duckdb import file_checks
from herdbook.adapters.duckdb.errors import may_be_unusable_after
from herdbook.adapters.duckdb.idle_release import IdleReleaser
from herdbook.adapters.duckdb.process_file import Attachment, Check, ProcessFile, Use
from herdbook.adapters.locks.wait_queue import forget_inherited
from herdbook.domain.errors import StoreBusy, StoreUnavailable

__all__ = ["Attachment", "SharedFile"]

_FORK_PATIENCE = 30.0


class SharedFile:
    """A database file that other processes use at the same time.

    `patience` is how many seconds to wait for others before StoreBusy, `linger` how many to keep
    the file open after a use. `check` is called after a crash, before the file is used: it gets a
    read-only attachment with the note `recovered` that was last acknowledged, and raises
    StoreDamaged if that commit is missing. Nothing has been written to the file at that point.

    Objects for the same file share all state; `close` each of them.
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
        self._file = _FILES.acquire(self.real_path)
        self._pid = os.getpid()

    @contextmanager
    def attach(self, *, write: bool, in_turn: bool = False) -> Iterator[Attachment]:
        """Use the file: alone to write, with others to read.

        With `in_turn` this process starts DuckDB only when it is next to get the file: where many
        need it at the same moment, whoever has the file has a processor too.

        What is not committed at the end of the block is rolled back. A thread may read while it
        reads, but not nest anything else: that raises RuntimeError, because it would wait for
        itself. Raises StoreBusy, StoreDamaged, StoreUnavailable, StoreFull.
        """
        file, use = self._current(), Use(write=write)
        doubtful = False
        try:
            yield file.attach(use, patience=self.patience, check=self._check, in_turn=in_turn)
        except BaseException as error:
            doubtful = may_be_unusable_after(error)
            raise
        finally:
            try:
                file.leave(use, linger=self.linger, doubtful=doubtful)
            except BaseException:  # interrupted: finish leaving
                file.leave(use, linger=0.0, doubtful=True)
                raise

    @contextmanager
    def hold_lock(self, *, write: bool) -> Iterator[int]:
        """Hold the lock with nothing attached here, for another program that opens the file.

        Other processes are kept away as by any use, alone to write or with others to read, and the
        other threads of this one wait. Gives the descriptor of the lock: a program that inherits it
        keeps the lock if this process is killed before it.
        """
        file, use = self._current(), Use(write=True)
        try:
            yield file.lock(use, patience=self.patience, write=write)
        finally:
            try:
                file.leave(use, linger=0.0)
            except BaseException:  # interrupted: finish leaving
                file.leave(use, linger=0.0)
                raise

    def is_wanted(self) -> bool:
        """Whether others wait for the file that is in use here, or its log has become long."""
        return self._current().is_wanted()

    def log_size(self) -> int:
        """How many bytes the log of the file has."""
        return self._current().log_size()

    def busy(self, waited: float) -> StoreBusy:
        """The error that names who holds the file."""
        return self._current().busy(waited)

    def create(self, fill: Check) -> bool:
        """Create the database and let `fill` fill it; False if there already is one.

        It appears at its path whole or not at all: a process that dies meanwhile leaves nothing
        that could be taken for a damaged database.
        """
        with self.hold_lock(write=True):
            if not file_checks.require_absence(self.real_path):
                return False
            self._file.create(fill)
            return True

    def close(self) -> None:
        """Close the file if nobody else in this process has it open."""
        if not self._closed and self._pid == os.getpid():
            _FILES.release(self._file)
        self._closed = True

    def _current(self) -> ProcessFile:
        if self._closed:
            raise StoreUnavailable(str(self.real_path), "it has been closed here")
        if self._pid != os.getpid():
            self._file = _FILES.acquire(self.real_path)
            self._pid = os.getpid()
        return self._file


class _ProcessFiles:
    """The files that this process has open, each once."""

    def __init__(self) -> None:
        self._hooked = False
        self._forking = threading.local()
        self._reset()

    def acquire(self, path: Path) -> ProcessFile:
        if self._pid != os.getpid():  # forked without Python's hooks
            self._after_fork_in_child()
        with self._mutex:
            if not self._hooked:
                self._hooked = True
                atexit.register(self._end)
                os.register_at_fork(
                    before=self._before_fork,
                    after_in_parent=self._after_fork_in_parent,
                    after_in_child=self._after_fork_in_child,
                )
            file = self._files.get(path)
            if file is None:
                file = self._files[path] = ProcessFile(path, self._idle_releaser)
            file.owners += 1
            return file

    def release(self, file: ProcessFile) -> None:
        with self._mutex:
            file.owners -= 1
            if file.owners:
                return
            del self._files[file.path]
        file.retire()

    def _reset(self) -> None:
        self._pid = os.getpid()
        self._mutex = threading.Lock()
        self._idle_releaser = IdleReleaser()
        self._files: dict[Path, ProcessFile] = {}

    def _end(self) -> None:
        self._idle_releaser.end()
        for file in list(self._files.values()):
            file.retire()

    def _before_fork(self) -> None:
        self._forking.files = list(self._files.values())
        for file in self._forking.files:
            file.close_before_fork(_FORK_PATIENCE)

    def _after_fork_in_parent(self) -> None:
        for file in reversed(self._forking.files):
            file.reopen_after_fork()

    def _after_fork_in_child(self) -> None:
        files, keeper = self._files, self._idle_releaser
        self._reset()
        for file in files.values():
            file.abandon()
        keeper.forget_inherited()
        forget_inherited()


_FILES = _ProcessFiles()
