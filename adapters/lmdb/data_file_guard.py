"""Guards the data file of a store: it is the one that was opened, whole, and written by one.

Nothing is read through LMDB, and nothing is written, in a file that was changed by something else
than Herdbook since a Herdbook process last left it, unless its pages have been verified.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from herdbook.adapters.lmdb import files
from herdbook.adapters.lmdb.page_check import VerificationTimedOut, time_limit, verify_pages
from herdbook.adapters.lmdb.watched_file import WatchedFile
from herdbook.adapters.lmdb.writer_lock import (
    PREPARING,
    Trust,
    WriterLockFile,
    judge_file,
    writer_lock,
)
from herdbook.adapters.locks.file_lock import A_MOMENT, Hold
from herdbook.adapters.system.os_errors import translate_os_error
from herdbook.domain.errors import HerdbookError, StoreDamaged, StoreUnavailable

SECONDS_AFTER_A_CRASH = 10.0
"""How long to verify a file whose writer died: LMDB's own pages survive that, so it is a measure
against damage that came with it, and nobody should wait long for a large store."""

_GONE = "it was removed or replaced while it was open"

WriterHold = Hold[WriterLockFile]


class FileGuard:
    """The data file in a folder, as this process knows it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._place = str(folder)
        self._data = folder / files.DATA
        self._file = WatchedFile(self._data)
        self._verified: tuple[int, ...] | None = None
        self._lines = self._signed = b""
        self._looks_again = 0.0
        self._left_at = 0
        self._lock = writer_lock(folder, self._require_known_file)

    def recognize(self) -> None:
        """Remember which file was opened; StoreUnavailable if it is not the one of before."""
        if not self._file.watch():
            raise self.gone()

    def require_same_file(self) -> None:
        """Raise StoreUnavailable if the path leads no longer to the file that was opened.

        A file that was deleted or replaced can still be read and written by those who have it open,
        and all of that is lost.
        """
        if not self._file.is_in_place():
            raise self.gone()

    def require_same_file_to_read(self) -> None:
        """As `require_same_file`, in the words for one who changes nothing."""
        if not self._file.is_in_place():
            raise StoreUnavailable(self._place, f"{_GONE}. Open it again")

    def is_replaced(self) -> bool:
        """Whether the file that was opened is no longer the one in the folder."""
        return not self._file.is_in_place()

    def settle(self, patience: float) -> None:
        """Before a file is opened: have it verified if nobody knows that it is whole.

        Waits for the writer's lock only where it has to be made sure of something.
        """
        if files.lacks_lock(self._folder):
            with self.holding(patience):
                if files.lacks_lock(self._folder):
                    files.allocate_lock(self._folder)
        files.complete_lock(self._folder)
        with self._translating():
            if judge_file(self._data, self._lock) in (Trust.UNCLEAN, Trust.FOREIGN):
                with self.holding(patience) as hold:
                    self._settle(hold)

    @contextmanager
    def holding(self, patience: float) -> Iterator[WriterHold]:
        """Hold the writer's lock on a file that is not open here, to make or to verify it."""
        hold = self._lock.take(write=True, patience=patience, sign=False)
        try:
            hold.file.sign(write=True, doing=PREPARING)
            yield hold
        finally:
            hold.release()

    def take(self, patience: float) -> WriterHold:
        """Hold the writer's lock on the file that is open here, as nobody else left it.

        Raises StoreBusy after `patience` seconds, StoreUnavailable if the file was removed or
        replaced, StoreDamaged if something has changed it and it is not whole.
        """
        hold = self._lock.take_again()
        if hold is None:
            hold = self._lock.take(write=True, patience=patience, sign=False)
        try:
            if time.monotonic() >= self._looks_again or hold.file.read_lines() != self._lines:
                self._look(hold)
            hold.file.note_begun()
        except BaseException as error:
            hold.release()
            if isinstance(error, OSError) and not isinstance(error, HerdbookError):
                raise translate_os_error(error, self._place) from error
            raise
        return hold

    def _look(self, hold: WriterHold) -> None:
        """Look at who held the lock before and how they left the file, and sign.

        Where other processes of Herdbook have written since a moment ago, only their line has to be
        looked at, and not the file.
        """
        self.require_same_file()
        line, now = hold.file.read_left(), time.monotonic()
        if now >= self._looks_again or not line.is_left or line.identity != self._file.identity:
            self._settle(hold)
            self._looks_again = now + A_MOMENT
        self._left_at = max(line.at, self._left_at)
        hold.file.sign(write=True)
        self._signed = hold.file.read_bytes(hold.file.writer)

    def let_go(self, hold: WriterHold, *, clean: bool) -> None:
        """Release the lock and write down how the file is left, unless it may be damaged."""
        if not hold.is_ours():
            return
        try:
            if clean:
                self.note_left(hold)
        finally:
            hold.release()

    def note_left(self, hold: WriterHold) -> None:
        """Write down that the file is left now; a clock that was set back counts from before."""
        identity = self._file.identity
        if identity is not None:
            self._left_at = max(time.time_ns(), self._left_at)
            try:
                self._lines = self._signed + hold.file.note_left(identity, self._left_at)
            except OSError:  # then the next one verifies it
                return

    def verify(self, *, insist: bool) -> bool:
        """Verify the pages; False if they do not fit but somebody wrote meanwhile: look again.

        Raises StoreDamaged if they do not fit and the file stayed as it was, or with `insist`.
        """
        self.require_same_file()
        before = self._data.stat()
        if _state(before) == self._verified:
            return True
        try:
            verify_pages(self._data, time_limit(before))
        except StoreDamaged:
            if insist or _state(self._data.stat()) == _state(before):
                raise
            return False
        self._verified = _state(before)
        return True

    def gone(self) -> StoreUnavailable:
        """The error for one whose store is no longer there."""
        return StoreUnavailable(self._place, f"{_GONE}. Nothing of this change was kept")

    def close(self) -> None:
        """Close the lock files, and watch the data file no longer."""
        self._lock.close()
        self._file.close()

    def forget_inherited(self) -> None:
        """In a forked child: the lock is the parent's, and its threads that wait are not here."""
        self._lock = writer_lock(self._folder, self._require_known_file)

    @contextmanager
    def _translating(self) -> Iterator[None]:
        try:
            yield
        except HerdbookError:
            raise
        except OSError as error:
            raise translate_os_error(error, self._place) from error

    def _require_known_file(self) -> None:
        """Make no lock files in a folder that was put in the place of ours."""
        if self._file.identity is not None:
            self.require_same_file()

    def _settle(self, hold: WriterHold) -> None:
        """Have the file verified unless it is as it was left, and write down that it is whole."""
        status = self._data.stat()
        trust = hold.file.read_left().judge(status)
        if trust is Trust.AS_LEFT:
            return
        hold.file.sign(write=True, doing=PREPARING)
        crashed = trust is Trust.UNCLEAN
        try:
            verify_pages(self._data, SECONDS_AFTER_A_CRASH if crashed else time_limit(status))
            self._verified = _state(status)
        except VerificationTimedOut:
            if not crashed:
                raise
        # As it was before it was verified: a change meanwhile is still to be noticed.
        at = max(status.st_mtime_ns, status.st_ctime_ns)
        hold.file.note_left((status.st_dev, status.st_ino), at)


def _state(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
