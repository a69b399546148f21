"""A database file in one process: who may use it, and when it is attached and detached."""

import logging
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import monotonic

import duckdb

from herdbook.adapters.duckdb import file_checks, rollback_journal
from herdbook.adapters.duckdb.database_instance import CATALOG, DatabaseInstance
from herdbook.adapters.duckdb.errors import translate_error, translate_errors
from herdbook.adapters.duckdb.file_lock import DuckDBFileLock, Hold
from herdbook.adapters.duckdb.idle_release import IdleReleaser
from herdbook.domain.errors import StoreBusy, StoreUnavailable

_LOG = logging.getLogger(__name__)

_LONG_LOG = 4 * 2**20
"""Whoever opens the file after a crash reads this first: a second and a half of a processor."""


class Use:
    """One thread's use of the file until it leaves; without a cursor, of the lock alone."""

    def __init__(self, *, write: bool) -> None:
        self.write = write
        self.cursor: duckdb.DuckDBPyConnection | None = None
        self.thread = threading.get_ident()
        self.pid = os.getpid()


class Attachment:
    """The attached file: `cursor` runs statements, and its tables are in the catalog `catalog`.

    `recovered` is the note last acknowledged by a process that then died, until a use of the file
    has ended well; a caller that gets it should check that the commit is there.
    """

    catalog = CATALOG

    def __init__(
        self,
        path: Path,
        use: Use,
        hold: Hold,
        checkpoint: Callable[[], None],
        recovered: str | None,
        *,
        number: int = 0,
    ) -> None:
        self.recovered = recovered
        self.use_mark: tuple[object, int] = (hold, number)
        """The hold of the lock, and how many uses have written in this process until this one."""
        self._checkpoint = checkpoint
        self._path = path
        self._use = use
        self._hold = hold

    @property
    def cursor(self) -> duckdb.DuckDBPyConnection:
        """The connection of this use, closed with it.

        Raises StoreUnavailable in a child that was forked meanwhile.
        """
        if os.getpid() != self._use.pid:
            raise StoreUnavailable(
                str(self._path), "this transaction belongs to the process that was forked"
            )
        if self._use.cursor is None:
            raise RuntimeError("this use of the file has ended")
        return self._use.cursor

    def make_log(self) -> None:
        """Create the log before DuckDB does, which would make it readable for everybody.

        DuckDB syncs the log's content, but not the folder in which it appears.
        """
        mode = self._path.stat().st_mode & 0o777
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW
        with suppress(FileExistsError):
            os.close(os.open(file_checks.wal_path(self._path), flags, mode))
            file_checks.sync_to_disk(self._path.parent)

    def checkpoint(self) -> None:
        """Write the log into the file now. No transaction may be open."""
        _ = self.cursor  # raises if this use has ended or is the parent's
        self._checkpoint()

    def acknowledge(self, note: str) -> None:
        """Record `note` for the last commit, to be found as `recovered` after a crash.

        The commit has happened, so a note that cannot be written must not make it fail.
        """
        _ = self.cursor  # raises if this use has ended or is the parent's
        if not self._use.write:
            raise RuntimeError("a reader has nothing to acknowledge")
        try:
            self._hold.file.acknowledge(note, self._path.stat())
        except (OSError, ValueError) as error:
            _LOG.warning("could not record the last commit of %s: %s", self._path, error)


Check = Callable[[Attachment], None]


class ProcessFile:
    """The state of the file in this process, one object for all its users.

    Threads are admitted at the `_gate`. One at a time is `_changer`: it alone attaches, detaches
    and waits for the lock, and does so outside the mutex. An interrupt may come anywhere, so every
    use ends with `leave`, whether it was admitted or not, and that undoes what there is to undo.
    """

    def __init__(self, path: Path, keeper: IdleReleaser) -> None:
        self.path = path
        self.owners = 0
        self._idle_releaser = keeper
        self._file_lock = DuckDBFileLock(path)
        self._database = DatabaseInstance(path)
        self._mutex = threading.RLock()  # used directly: an interrupt can tear Condition's `with`
        self._gate = threading.Condition(self._mutex)
        self._uses: list[Use] = []
        self._hold: Hold | None = None
        self._changer: int | None = None
        self._outside = False  # the changer only waits for the lock: nothing is held yet
        self._waiting: list[Use] = []
        self._closing = False  # nobody new is admitted, and the last use does not linger
        self._retired = False
        self._recovered: str | None = None
        self._writes = 0
        self._linger_until = 0.0

    def attach(
        self, use: Use, *, patience: float, check: Check | None, in_turn: bool = False
    ) -> Attachment:
        """Admit this use, and attach the file unless it still is attached.

        With `in_turn`, DuckDB itself is started only when this process is next to get the file.
        """
        deadline = monotonic() + patience
        with self._mutex:
            self._wait_for_admission(use, patience)
            is_attached = self._hold is not None and (self._hold.write or not use.write)
            if self._hold is not None and is_attached and not self._is_left_behind():
                return self._admit(use, self._hold)
            self._changer = use.thread
        try:
            self._detach()
            file_checks.require_database(self.path)
            if not in_turn:
                self._database.start()
            prepare = self._start_in_turn if in_turn else None
            self._take_lock(write=use.write, deadline=deadline, prepare=prepare)
            self._database.start()
            self._undo_torn_checkpoint(deadline)
            hold = self._attach_file(check)
            with self._mutex:
                return self._admit(use, hold)
        except BaseException:
            _close_cursor(use, self.path)
            self._detach()
            raise
        finally:
            self._end_change()

    def lock(self, use: Use, *, patience: float, write: bool) -> int:
        """Admit this use alone, with the lock held and nothing attached; returns its descriptor.

        Within this process it is alone even if others may read: what is attached has to be
        detached.
        """
        deadline = monotonic() + patience
        with self._mutex:
            self._wait_for_admission(use, patience)
            self._changer = use.thread
        try:
            self._detach()
            file_checks.require_folder(self.path)
            file_checks.require_own_files(self.path)
            self._take_lock(write=write, deadline=deadline)
            self._undo_torn_checkpoint(deadline)
            with self._mutex:
                self._closing = True
                self._uses.append(use)
                return self._require_hold().descriptor
        finally:
            self._end_change()

    def leave(self, use: Use, *, linger: float, doubtful: bool = False) -> None:
        """End a use, also one that was not admitted; the last one closes the file.

        The file is closed at once or lingers. May be called again if it was interrupted.
        """
        if use.pid != os.getpid():
            return
        doubtful = not _close_cursor(use, self.path) or doubtful
        with self._mutex:
            if use in self._uses:
                self._uses.remove(use)
                self._recovered = self._recovered if doubtful else None
            self._gate.notify_all()
            if self._changer is None:
                self._linger_or_close(linger=linger, doubtful=doubtful)
            if self._changer != threading.get_ident():
                return
        self._detach_as_changer()

    def release_if_idle(self, hold: Hold) -> None:
        """Close the file if it is idle, and its time is over or somebody waits for it."""
        with self._mutex:
            if self._hold is not hold or self._uses or self._changer is not None:
                return
            if monotonic() < self._linger_until and not hold.has_waiters():
                self._idle_releaser.watch(self, hold, self._linger_until)
                return
            self._changer = threading.get_ident()
        self._detach_as_changer()

    def is_wanted(self) -> bool:
        """Whether threads or processes wait for the file, or its log has become long."""
        with self._mutex:
            hold = self._hold
            waits = bool(self._waiting) or (hold is not None and hold.has_waiters())
        return waits or self._log_is_long()

    def log_size(self) -> int:
        """How many bytes the log has, 0 if there is none."""
        try:
            return file_checks.wal_path(self.path).stat().st_size
        except OSError:
            return 0

    def busy(self, waited: float) -> StoreBusy:
        """The error that names who holds the file."""
        return self._file_lock.busy(waited)

    def create(self, fill: Check) -> None:
        """Create the database beside its place and move it there whole. Only under `lock`."""
        hold = self._require_hold()
        new = file_checks.new_path(self.path)
        with translate_errors(str(self.path)):
            try:
                _remove(new)
                self._fill(new, hold, fill)
                rollback_journal.discard(self.path)  # of an earlier database at this path
                new.replace(self.path)
                file_checks.sync_to_disk(self.path.parent)
                hold.file.record_clean(file_checks.read_state(self.path))
            finally:
                _remove(new)

    def retire(self) -> None:
        """Close the file for good, now or at the end of the last use."""
        with self._mutex:
            self._retired = self._closing = True
            # A caller may copy a file right after closing it: wait for a linger that is ending.
            self._gate.wait_for(lambda: self._uses or self._changer is None or self._outside)
            if self._uses or self._changer is not None:
                return
            self._changer = threading.get_ident()
        self._detach_as_changer()

    def close_before_fork(self, patience: float) -> None:
        """Close the file before a fork and admit nobody until `reopen_after_fork`.

        A thread that forks inside its own use keeps it; the child then leaves it alone.
        """
        self._mutex.acquire()
        me = threading.get_ident()
        mine = self._changer == me or any(use.thread == me for use in self._uses)
        if not mine and self._gate.wait_for(self._is_quiet, patience):
            self._detach()

    def reopen_after_fork(self) -> None:
        """Admit threads again, in the parent."""
        self._mutex.release()

    def abandon(self) -> None:
        """In a forked child: leave alone what is the parent's."""
        self._database.abandon([use.cursor for use in self._uses if use.cursor is not None])

    def _linger_or_close(self, *, linger: float, doubtful: bool) -> None:
        """After a use has ended: let the file linger, or decide to close it."""
        hold = self._hold
        if hold is None:
            return
        if doubtful or linger <= 0 or hold.has_waiters() or self._log_is_long():
            self._closing = True
        if self._uses:
            return
        if self._closing:
            self._changer = threading.get_ident()
        else:
            self._linger_until = monotonic() + linger
            self._idle_releaser.watch(self, hold, self._linger_until)

    def _is_left_behind(self) -> bool:
        """Whether the file only lingers here, and another one has taken its place meanwhile."""
        return not self._uses and self._database.is_replaced()

    def _log_is_long(self) -> bool:
        """Whether the log should be written into the file before it gets any longer."""
        return self.log_size() > _LONG_LOG

    def _is_quiet(self) -> bool:
        return not self._uses and (self._changer is None or self._outside)

    def _wait_for_admission(self, use: Use, patience: float) -> None:
        mine = [each for each in self._uses if each.thread == use.thread]
        if mine and (use.write or any(each.write for each in mine)):
            raise RuntimeError(f"this thread already uses {self.path}: transactions do not nest")
        if mine:
            return
        begun = monotonic()
        try:
            self._waiting.append(use)
            if not self._gate.wait_for(lambda: self._is_free(use), patience):
                raise self._file_lock.busy(monotonic() - begun)
        finally:
            self._waiting = [each for each in self._waiting if each is not use]
            self._gate.notify_all()

    def _is_free(self, use: Use) -> bool:
        """Whether a waiting use can begin: readers and writers do not overtake one another."""
        if self._changer is not None or any(
            each.write is not use.write for each in self._ahead(use)
        ):
            return False
        if use.write:
            return not self._uses
        return not (self._uses and (self._closing or self._uses[0].write))

    def _ahead(self, use: Use) -> list[Use]:
        """The uses that have waited for longer than this one."""
        return self._waiting[: self._waiting.index(use)]

    def _admit(self, use: Use, hold: Hold) -> Attachment:
        self._uses.append(use)
        use.cursor = self._database.cursor()
        self._writes += use.write
        return Attachment(
            self.path, use, hold, self._checkpoint, self._recovered, number=self._writes
        )

    def _start_in_turn(self) -> None:
        """Start DuckDB while another process still has the file; no fork may come in between."""
        with self._mutex:
            self._outside = False
        try:
            self._database.start()
        finally:
            with self._mutex:
                self._outside = True
                self._gate.notify_all()

    def _take_lock(
        self, *, write: bool, deadline: float, prepare: Callable[[], None] | None = None
    ) -> None:
        self._outside = True
        try:
            patience = deadline - monotonic()
            wakeup_address = self._idle_releaser.wakeup_address()
            self._hold = self._file_lock.take(
                write=write, patience=patience, wakeup_address=wakeup_address, prepare=prepare
            )
        finally:
            with self._mutex:  # a fork in progress ends before anything is attached
                self._outside = False

    def _undo_torn_checkpoint(self, deadline: float) -> None:
        """Repair a file in which a checkpoint was cut off; the lock is then held exclusively."""
        with translate_errors(str(self.path)):
            if not self.path.exists() or not rollback_journal.is_needed(self.path):
                return
            if not self._require_hold().write:
                self._detach()
                self._take_lock(write=True, deadline=deadline)
            rollback_journal.restore(self.path)

    def _attach_file(self, check: Check | None) -> Hold:
        hold = self._require_hold()
        status = file_checks.require_database(self.path)
        file_checks.require_length(self.path, hold.file.clean_state())
        self._recovered = hold.file.last_acknowledged(status)
        if self._recovered is not None and check is not None and not self.log_size():
            # DuckDB removes an empty log when it attaches the file to write.
            self._database.attach(self.path, write=False)
            self._check(hold, check)
            self._database.detach()
        self._database.attach(self.path, write=hold.write)
        if self._recovered is not None and check is not None:
            self._check(hold, check)
        return hold

    def _require_hold(self) -> Hold:
        if self._hold is None:
            raise RuntimeError("the lock is not held")
        return self._hold

    def _check(self, hold: Hold, check: Check) -> None:
        """Check whether the last commit is there, before anything is written.

        DuckDB reads a log that has lost its end without a word, and cuts it off when it next writes
        to it. So a file that is refused is closed without that: its traces stay as they are.
        """
        try:
            self._run_attached(self.path, hold, check, write=False)
        except BaseException:
            self._database.drop()
            raise
        self._recovered = None

    def _fill(self, new: Path, hold: Hold, fill: Check) -> None:
        self._database.start()
        self._database.attach(new, write=True)
        new.chmod(0o600)
        trouble = None
        try:
            self._run_attached(new, hold, fill, write=True)
        finally:
            trouble = self._database.detach()
        if trouble is not None:
            raise translate_error(trouble, str(self.path)) from trouble
        file_checks.sync_to_disk(new)

    def _run_attached(self, path: Path, hold: Hold, to: Check, *, write: bool) -> None:
        use = Use(write=write)
        self._uses.append(use)
        use.cursor = self._database.cursor()
        try:
            recovered = None if write else self._recovered
            to(Attachment(path, use, hold, self._checkpoint, recovered))
        finally:
            if use.pid == os.getpid():
                self._uses.remove(use)
                _close_cursor(use, path)

    def _detach_as_changer(self) -> None:
        try:
            self._detach()
        finally:
            self._end_change()

    def _detach(self) -> None:
        """Detach the file, then release the lock: in this order, whatever fails."""
        hold = self._hold
        if hold is None:
            return
        try:
            was_attached = self._database.attached
            trouble = self._database.detach() if self._has_place(hold) else self._leave_place()
            if trouble is not None:
                _LOG.warning("%s keeps its log beside it for now: %s", self.path, trouble)
            elif was_attached and self._is_clean(hold):
                hold.file.record_clean(file_checks.read_state(self.path))
        except OSError as error:
            _LOG.warning("could not record how %s was closed: %s", self.path, error)
        finally:
            if self._database.attached:  # interrupted
                self._database.drop()
            hold.release()
            self._hold = None

    def _has_place(self, hold: Hold) -> bool:
        """Whether the lock that is held is the one of whatever file is at the path."""
        return hold.is_at(self.path.with_name(f"{self.path.name}.lock"))

    def _leave_place(self) -> OSError:
        """Close the file without its log: DuckDB would remove that by its path.

        The folder was moved, and there is one in its place whose log is that of others.
        """
        self._database.drop()
        return OSError("it was moved while it was open")

    def _checkpoint(self) -> None:
        """Write the log into the file, as `DatabaseInstance.checkpoint`, if it is at its path."""
        if not self._has_place(self._require_hold()):
            raise OSError("it was moved while it was open")
        self._database.checkpoint()

    def _is_clean(self, hold: Hold) -> bool:
        """Whether nothing is owed: written, nothing left in the log, no doubt about a crash."""
        return (
            hold.write and self._recovered is None and not file_checks.wal_path(self.path).exists()
        )

    def _end_change(self) -> None:
        with self._mutex:
            self._changer = None
            self._closing = self._closing and (bool(self._uses) or self._retired)
            if self._retired and not self._uses:
                self._database.drop()
            self._gate.notify_all()


def _close_cursor(use: Use, path: Path) -> bool:
    """Close the cursor of a use, which rolls back what was not committed; whether that went well.

    No transaction may stay open: the file would stay open after the detach.
    """
    cursor, use.cursor = use.cursor, None
    if cursor is None:
        return True
    try:
        cursor.close()
    except duckdb.Error as error:
        _LOG.warning("DuckDB complained at the end of a transaction on %s: %s", path, error)
        return False
    except BaseException:  # an interrupt may come before the close as well as after it
        cursor.close()
        raise
    return True


def _remove(unfinished: Path) -> None:
    for leftover in (unfinished, file_checks.wal_path(unfinished)):
        leftover.unlink(missing_ok=True)
