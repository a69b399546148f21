"""Guards the data file: it is still the file that was opened, it is whole, and one process writes.

Nothing is read or written through LMDB in a file that something other than Herdbook has changed
since a Herdbook process last closed it, unless its pages have been verified.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from herdbook.adapters.lmdb import files
from herdbook.adapters.lmdb.page_check import VerificationTimedOut, time_limit, verify_pages
from herdbook.adapters.lmdb.writer_lock import (
    PREPARING,
    FileCondition,
    WriterLockFile,
    judge_file,
    writer_lock,
)
from herdbook.adapters.locks.file_lock import RECHECK_SECONDS, Hold
from herdbook.adapters.system.os_errors import translate_os_error, translate_os_errors
from herdbook.domain.errors import HerdbookError, StoreDamaged, StoreUnavailable

SECONDS_AFTER_A_CRASH = 10.0
"""How many seconds to verify a file whose writer died. LMDB's pages survive that, so this only
looks for damage that came with the crash, and nobody should wait long for a large store."""

_GONE = "it was removed or replaced while it was open"

WriterHold = Hold[WriterLockFile]


_LINKS = Path("/proc/self/fd")


class WatchedFile:
    """A file at a path, and whether it is still there.

    It is kept open, so that no other file gets its inode number. The system could be asked for the
    status of the file. But newer kernels then give its next write a time of its own, which has to
    be written to the disk as well: a commit takes a quarter longer. So where the system gives the
    path of an open file (Linux), that is compared instead.
    """

    def __init__(self, path: Path) -> None:
        self._path = str(path)
        self.identity: tuple[int, int] | None = None
        self._descriptor: int | None = None
        self._link = ""
        self._target = ""

    def watch(self) -> bool:
        """Watch the file that is at the path now; False if another one was watched before."""
        status = os.stat(self._path)  # noqa: PTH116 - as in `is_in_place`
        identity = status.st_dev, status.st_ino
        if self._descriptor is not None:
            return identity == self.identity
        if self.identity not in (None, identity):
            return False
        flags = getattr(os, "O_PATH", os.O_RDONLY) | os.O_NOFOLLOW
        descriptor = os.open(self._path, flags)
        opened = os.fstat(descriptor)
        if (opened.st_dev, opened.st_ino) != identity:
            os.close(descriptor)
            return False
        self._descriptor, self.identity = descriptor, identity
        link = f"{_LINKS}/{descriptor}"
        try:
            # The link last: another thread may compare it with the target at once.
            self._target, self._link = os.readlink(link), link  # noqa: PTH115 - pathlib is slow
        except OSError:
            self._link = ""
        return True

    def is_in_place(self) -> bool:
        """Whether the path still leads to the watched file."""
        try:
            if self._link:
                return os.readlink(self._link) == self._target  # noqa: PTH115
            status = os.stat(self._path)  # noqa: PTH116 - in every transaction, pathlib is slow
        except OSError:
            return False
        return (status.st_dev, status.st_ino) == self.identity

    def close(self) -> None:
        """Stop watching; another file may be watched then."""
        if self._descriptor is not None:
            os.close(self._descriptor)
        self._descriptor, self._link = None, ""


class DataFileGuard:
    """The data file of a folder, as this process knows it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._place = str(folder)
        self._data = folder / files.DATA
        self._file = WatchedFile(self._data)
        self._verified: tuple[int, ...] | None = None
        self._lines = self._signed = b""
        self._next_check = 0.0
        self._left_at = 0
        self._lock = writer_lock(folder, self._require_known_file)

    def remember_file(self) -> None:
        """Remember which file was opened.

        Raises StoreUnavailable if it is not the one that was opened before.
        """
        if not self._file.watch():
            raise self.gone_error()

    @property
    def inode(self) -> int:
        """The number of the file that was opened, also if it is no longer in the folder."""
        if self._file.identity is None:
            raise self.gone_error()
        return self._file.identity[1]

    def require_same_file(self, *, write: bool = True) -> None:
        """Raise StoreUnavailable if the path no longer leads to the file that was opened.

        A file that was deleted or replaced can still be read and written by processes that have it
        open, and everything they write is lost.
        """
        if not self._file.is_in_place():
            raise self.gone_error(write=write)

    def is_replaced(self) -> bool:
        """Whether the file that was opened is no longer the one in the folder.

        Any thread may ask, also while another one opens the folder and watches no file yet.
        """
        return self._file.identity is not None and not self._file.is_in_place()

    def verify_if_unknown(self, patience: float) -> None:
        """Before a file is opened: verify its pages unless they are known to be whole.

        Waits for the writer's lock only if a lock file has to be made or the pages have to be
        verified.
        """
        if files.is_lock_missing(self._folder):
            with self.hold_unopened(patience):
                if files.is_lock_missing(self._folder):
                    files.allocate_lock(self._folder)
        files.complete_lock(self._folder)
        with translate_os_errors(self._place):
            if judge_file(self._data, self._lock) in (FileCondition.UNCLEAN, FileCondition.FOREIGN):
                with self.hold_unopened(patience) as hold:
                    self._verify_unless_as_left(hold)

    @contextmanager
    def hold_unopened(self, patience: float) -> Iterator[WriterHold]:
        """Hold the writer's lock on a file that is not open here, to create or to verify it."""
        hold = self._lock.take(write=True, patience=patience, sign=False)
        try:
            hold.file.sign(write=True, doing=PREPARING)
            yield hold
        finally:
            hold.release()

    def take(self, patience: float) -> WriterHold:
        """Hold the writer's lock on the file that is open here, after checking how it was left.

        Raises StoreBusy after `patience` seconds, StoreUnavailable if the file was removed or
        replaced, and StoreDamaged if something else changed it and its pages are not whole.
        """
        hold = self._lock.take_again()
        if hold is None:
            hold = self._lock.take(write=True, patience=patience, sign=False)
        try:
            if time.monotonic() >= self._next_check or hold.file.read_lines() != self._lines:
                self._check_last_writer(hold)
            hold.file.record_begin()
        except BaseException as error:
            hold.release()
            if isinstance(error, OSError) and not isinstance(error, HerdbookError):
                raise translate_os_error(error, self._place) from error
            raise
        return hold

    def _check_last_writer(self, hold: WriterHold) -> None:
        """Check who held the lock before and how they left the file, then sign.

        If other Herdbook processes have written since the last check a moment ago, only their line
        in the lock file is checked and not the file.
        """
        self.require_same_file()
        line, now = hold.file.read_left_line(), time.monotonic()
        if now >= self._next_check or not line.is_left or line.identity != self._file.identity:
            self._verify_unless_as_left(hold)
            self._next_check = now + RECHECK_SECONDS
        self._left_at = max(line.at, self._left_at)
        hold.file.sign(write=True)
        self._signed = hold.file.read_bytes(hold.file.writer)

    def release_hold(self, hold: WriterHold, *, clean: bool) -> None:
        """Release the lock.

        Records how the file is left, unless it may be damaged (`clean` is False).
        """
        if not hold.is_ours():
            return
        try:
            if clean:
                self.record_left(hold)
        finally:
            hold.release()

    def record_left(self, hold: WriterHold) -> None:
        """Record that the file is left now; if the clock was set back, the earlier time is kept."""
        identity = self._file.identity
        if identity is not None:
            self._left_at = max(time.time_ns(), self._left_at)
            try:
                self._lines = self._signed + hold.file.record_left(identity, self._left_at)
            except OSError:  # then the next writer verifies the file
                return

    def verify(self, *, insist: bool) -> bool:
        """Verify the pages; False if they do not fit but somebody wrote meanwhile: verify again.

        Raises StoreDamaged if they do not fit and the file did not change meanwhile, or with
        `insist`.
        """
        self.require_same_file()
        before = self._data.stat()
        if _file_state(before) == self._verified:
            return True
        try:
            verify_pages(self._data, time_limit(before))
        except StoreDamaged:
            if insist or _file_state(self._data.stat()) == _file_state(before):
                raise
            return False
        self._verified = _file_state(before)
        return True

    def gone_error(self, *, write: bool = True) -> StoreUnavailable:
        """The error for a caller whose store is no longer there."""
        then = "Nothing of this change was kept" if write else "Open it again"
        return StoreUnavailable(self._place, f"{_GONE}. {then}")

    def close(self) -> None:
        """Close the lock files and stop watching the data file."""
        self._lock.close()
        self._file.close()

    def forget_inherited(self) -> None:
        """In a forked child: start with a lock of its own.

        The inherited one is the parent's, and the threads that wait for it do not exist in the
        child.
        """
        self._lock = writer_lock(self._folder, self._require_known_file)

    def _require_known_file(self) -> None:
        """Make no lock files in a folder that was put in the place of ours."""
        if self._file.identity is not None:
            self.require_same_file()

    def _verify_unless_as_left(self, hold: WriterHold) -> None:
        """Verify the pages unless the file is as it was left, and record that it is whole."""
        status = self._data.stat()
        trust = hold.file.read_left_line().judge(status)
        if trust is FileCondition.AS_LEFT:
            return
        hold.file.sign(write=True, doing=PREPARING)
        crashed = trust is FileCondition.UNCLEAN
        try:
            verify_pages(self._data, SECONDS_AFTER_A_CRASH if crashed else time_limit(status))
            self._verified = _file_state(status)
        except VerificationTimedOut:
            if not crashed:
                raise
        # The times from before the verification: a change meanwhile must still be noticed.
        at = max(status.st_mtime_ns, status.st_ctime_ns)
        hold.file.record_left((status.st_dev, status.st_ino), at)


def _file_state(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
