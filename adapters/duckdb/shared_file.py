"""A database file as one process has it: who may use it, when it is taken up and put down."""

import logging
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import monotonic

import duckdb

from herdbook.adapters.duckdb import file_checks, rollback_journal
from herdbook.adapters.duckdb.attachment import CATALOG, Engine
from herdbook.adapters.duckdb.errors import translated, translating
from herdbook.adapters.duckdb.file_lock import Hold, Sidecar
from herdbook.adapters.duckdb.idle_release import Keeper
from herdbook.domain.errors import StoreUnavailable

_LOG = logging.getLogger(__name__)

_LONG_LOG = 16 * 2**20


class Use:
    """A claim of one thread on the file until it leaves; without a cursor, on the lock alone."""

    def __init__(self, *, write: bool) -> None:
        self.write = write
        self.cursor: duckdb.DuckDBPyConnection | None = None
        self.thread = threading.get_ident()
        self.pid = os.getpid()


class Attachment:
    """The file, attached: `cursor` speaks to it, and its tables are in the catalog `catalog`.

    `recovered` is the note last acknowledged by a process that then died, until a use of the file
    has ended well; whoever gets it should see whether that commit is there.
    """

    catalog = CATALOG

    def __init__(
        self,
        path: Path,
        use: Use,
        hold: Hold,
        checkpoint: Callable[[], None],
        recovered: str | None,
    ) -> None:
        self.recovered = recovered
        self._checkpoint = checkpoint
        self._path = path
        self._use = use
        self._hold = hold

    @property
    def cursor(self) -> duckdb.DuckDBPyConnection:
        """The connection of this use, closed with it. Refused in a child forked meanwhile."""
        if os.getpid() != self._use.pid:
            raise StoreUnavailable(
                str(self._path), "this transaction belongs to the process that was forked"
            )
        if self._use.cursor is None:
            raise RuntimeError("this use of the file has ended")
        return self._use.cursor

    def make_log(self) -> None:
        """Make the log before DuckDB does, which would let everybody read what it will hold.

        DuckDB syncs what is in it, but not the folder in which it appears.
        """
        mode = self._path.stat().st_mode & 0o777
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW
        with suppress(FileExistsError):
            os.close(os.open(file_checks.wal(self._path), flags, mode))
            file_checks.sync(self._path.parent)

    def checkpoint(self) -> None:
        """Write the log into the file now. No transaction may be open."""
        _ = self.cursor  # refuses what has ended or is the parent's
        self._checkpoint()

    def acknowledge(self, note: str) -> None:
        """Keep `note` as the word of the last commit, to be found as `recovered` after a crash.

        The commit has happened, so that the note cannot be written must not make it fail.
        """
        _ = self.cursor  # refuses what has ended or is the parent's
        if not self._use.write:
            raise RuntimeError("a reader has nothing to acknowledge")
        try:
            self._hold.file.acknowledge(note, self._path.stat())
        except (OSError, ValueError) as error:
            _LOG.warning("could not note the last commit of %s: %s", self._path, error)


Check = Callable[[Attachment], None]


class Share:
    """The file's state in this process, one for all that name it.

    Threads are let in at the `_gate`. One at a time is `_changer`: it alone attaches, detaches and
    waits for the lock, and does so outside the mutex. An interrupt may come anywhere, so every use
    ends with `leave`, whether it was let in or not, and that looks at what there is to be undone.
    """

    def __init__(self, path: Path, keeper: Keeper) -> None:
        self.path = path
        self.owners = 0
        self._keeper = keeper
        self._sidecar = Sidecar(path)
        self._engine = Engine(path)
        self._mutex = threading.RLock()  # entered by itself: Condition's own `with` can be torn
        self._gate = threading.Condition(self._mutex)
        self._uses: list[Use] = []
        self._hold: Hold | None = None
        self._changer: int | None = None
        self._outside = False  # the changer only waits for the lock: nothing is held yet
        self._waiting: list[Use] = []
        self._closing = False  # nobody new comes in, and the last one out does not linger
        self._retired = False
        self._recovered: str | None = None
        self._linger_until = 0.0

    def attach(self, use: Use, *, patience: float, check: Check | None) -> Attachment:
        """Let this use in, and attach the file unless it still is."""
        deadline = monotonic() + patience
        with self._mutex:
            self._wait_for_admission(use, patience)
            if self._hold is not None and (self._hold.write or not use.write):
                return self._admit(use, self._hold)
            self._changer = use.thread
        try:
            self._put_down()
            file_checks.require_database(self.path)
            self._engine.start()
            self._take_lock(write=use.write, deadline=deadline)
            self._undo_torn_checkpoint(deadline)
            hold = self._take_up(check)
            with self._mutex:
                return self._admit(use, hold)
        except BaseException:
            _ended(use, self.path)
            self._put_down()
            raise
        finally:
            self._changed()

    def lock(self, use: Use, *, patience: float, write: bool) -> int:
        """Let this use in alone, with the lock held and nothing attached; the lock's descriptor.

        In this process it is alone also when others may read: what is attached has to be put down.
        """
        deadline = monotonic() + patience
        with self._mutex:
            self._wait_for_admission(use, patience)
            self._changer = use.thread
        try:
            self._put_down()
            file_checks.require_folder(self.path)
            file_checks.require_own_files(self.path)
            self._take_lock(write=write, deadline=deadline)
            self._undo_torn_checkpoint(deadline)
            with self._mutex:
                self._closing = True
                self._uses.append(use)
                return self._held().descriptor
        finally:
            self._changed()

    def leave(self, use: Use, *, linger: float, doubtful: bool = False) -> None:
        """End a use, also one that was not let in; the last one puts the file down.

        Does it at once, or lets it linger; can be called again when it was interrupted.
        """
        if use.pid != os.getpid():
            return
        doubtful = not _ended(use, self.path) or doubtful
        with self._mutex:
            if use in self._uses:
                self._uses.remove(use)
                self._recovered = self._recovered if doubtful else None
            self._gate.notify_all()
            if self._changer is None:
                self._keep_or_close(linger=linger, doubtful=doubtful)
            if self._changer != threading.get_ident():
                return
        self._put_down_as_changer()

    def linger_over(self, hold: Hold) -> None:
        """Put the file down if it is still only kept for the next use, long enough or wanted."""
        with self._mutex:
            if self._hold is not hold or self._uses or self._changer is not None:
                return
            if monotonic() < self._linger_until and not hold.somebody_waits():
                self._keeper.watch(self, hold, self._linger_until)
                return
            self._changer = threading.get_ident()
        self._put_down_as_changer()

    def create(self, fill: Check) -> None:
        """Make the database beside its place and move it there whole. Only under `lock`."""
        hold = self._held()
        new = file_checks.new(self.path)
        with translating(str(self.path)):
            try:
                _remove(new)
                self._fill(new, hold, fill)
                rollback_journal.discard(self.path)  # of a database that was here before
                new.replace(self.path)
                file_checks.sync(self.path.parent)
                hold.file.put_down(file_checks.seal(self.path))
            finally:
                _remove(new)

    def retire(self) -> None:
        """Put the file down for good, now or with the end of the last use."""
        with self._mutex:
            self._retired = self._closing = True
            # Whoever closed a file may copy it at once: a linger that is just ending ends first.
            self._gate.wait_for(lambda: self._uses or self._changer is None or self._outside)
            if self._uses or self._changer is not None:
                return
            self._changer = threading.get_ident()
        self._put_down_as_changer()

    def rest_for_fork(self, patience: float) -> None:
        """Close the file before a fork and keep the gate shut until `wake_after_fork`.

        A thread that forks inside its own use keeps it; the child then leaves it alone.
        """
        self._mutex.acquire()
        me = threading.get_ident()
        mine = self._changer == me or any(use.thread == me for use in self._uses)
        if not mine and self._gate.wait_for(self._is_quiet, patience):
            self._put_down()

    def wake_after_fork(self) -> None:
        """Open the gate again, in the parent."""
        self._mutex.release()

    def abandon(self) -> None:
        """In a forked child: leave what is the parent's alone."""
        self._engine.abandon([use.cursor for use in self._uses if use.cursor is not None])

    def _keep_or_close(self, *, linger: float, doubtful: bool) -> None:
        """Decide what becomes of the file now that a use has ended: let it linger, or close it."""
        hold = self._hold
        if hold is None:
            return
        if doubtful or linger <= 0 or hold.somebody_waits() or self._log_is_long():
            self._closing = True
        if self._uses:
            return
        if self._closing:
            self._changer = threading.get_ident()
        else:
            self._linger_until = monotonic() + linger
            self._keeper.watch(self, hold, self._linger_until)

    def _log_is_long(self) -> bool:
        """Whether the log should be written into the file before it gets any longer."""
        try:
            return file_checks.wal(self.path).stat().st_size > _LONG_LOG
        except OSError:
            return False

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
            if not self._gate.wait_for(lambda: self._is_free(write=use.write), patience):
                raise self._sidecar.busy(monotonic() - begun)
        finally:
            self._waiting = [each for each in self._waiting if each is not use]
            self._gate.notify_all()

    def _is_free(self, *, write: bool) -> bool:
        if self._changer is not None:
            return False
        if write:
            return not self._uses
        if self._uses and (self._closing or self._uses[0].write):
            return False
        return not any(each.write for each in self._waiting)

    def _admit(self, use: Use, hold: Hold) -> Attachment:
        self._uses.append(use)
        use.cursor = self._engine.cursor()
        return Attachment(self.path, use, hold, self._engine.checkpoint, self._recovered)

    def _take_lock(self, *, write: bool, deadline: float) -> None:
        self._outside = True
        try:
            patience = deadline - monotonic()
            bell = self._keeper.bell()
            self._hold = self._sidecar.take(write=write, patience=patience, bell=bell)
        finally:
            with self._mutex:  # a fork that is under way ends before anything is attached
                self._outside = False

    def _undo_torn_checkpoint(self, deadline: float) -> None:
        """Repair a file in which a checkpoint was cut off; the lock is held alone from then on."""
        with translating(str(self.path)):
            if not self.path.exists() or not rollback_journal.is_needed(self.path):
                return
            if not self._held().write:
                self._put_down()
                self._take_lock(write=True, deadline=deadline)
            rollback_journal.restore(self.path)

    def _take_up(self, check: Check | None) -> Hold:
        hold = self._held()
        status = file_checks.require_database(self.path)
        file_checks.require_length(self.path, hold.file.seal())
        self._recovered = hold.file.acknowledged(status)
        if self._recovered is not None and check is not None:
            self._check(hold, check)
        self._engine.attach(self.path, write=hold.write)
        return hold

    def _held(self) -> Hold:
        if self._hold is None:
            raise RuntimeError("the lock is not held")
        return self._hold

    def _check(self, hold: Hold, check: Check) -> None:
        """Ask, reading only, whether the last commit is there: a write would cover the traces."""
        self._engine.attach(self.path, write=False)
        try:
            self._lend(self.path, hold, check, write=False)
        finally:
            self._engine.detach()
        self._recovered = None

    def _fill(self, new: Path, hold: Hold, fill: Check) -> None:
        self._engine.start()
        self._engine.attach(new, write=True)
        new.chmod(0o600)
        trouble = None
        try:
            self._lend(new, hold, fill, write=True)
        finally:
            trouble = self._engine.detach()
        if trouble is not None:
            raise translated(trouble, str(self.path)) from trouble
        file_checks.sync(new)

    def _lend(self, path: Path, hold: Hold, to: Check, *, write: bool) -> None:
        use = Use(write=write)
        self._uses.append(use)
        use.cursor = self._engine.cursor()
        try:
            recovered = None if write else self._recovered
            to(Attachment(path, use, hold, self._engine.checkpoint, recovered))
        finally:
            if use.pid == os.getpid():
                self._uses.remove(use)
                _ended(use, path)

    def _put_down_as_changer(self) -> None:
        try:
            self._put_down()
        finally:
            self._changed()

    def _put_down(self) -> None:
        """Detach the file, then let go of the lock: in this order, whatever fails."""
        hold = self._hold
        if hold is None:
            return
        try:
            was_attached = self._engine.attached
            trouble = self._engine.detach()
            if trouble is not None:
                _LOG.warning("%s keeps its log beside it for now. %s", self.path, trouble)
            elif was_attached and self._is_whole(hold):
                hold.file.put_down(file_checks.seal(self.path))
        except OSError as error:
            _LOG.warning("could not note how %s was put down: %s", self.path, error)
        finally:
            if self._engine.attached:  # interrupted
                self._engine.drop()
            hold.release()
            self._hold = None

    def _is_whole(self, hold: Hold) -> bool:
        """Whether nothing is owed: written, nothing left in the log, no doubt about a crash."""
        return hold.write and self._recovered is None and not file_checks.wal(self.path).exists()

    def _changed(self) -> None:
        with self._mutex:
            self._changer = None
            self._closing = self._closing and (bool(self._uses) or self._retired)
            if self._retired and not self._uses:
                self._engine.drop()
            self._gate.notify_all()


def _ended(use: Use, path: Path) -> bool:
    """Close the cursor of a use, which rolls back what was not committed; whether that went well.

    Nothing may keep a transaction open: the file would stay open behind the detach.
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
    for leftover in (unfinished, file_checks.wal(unfinished)):
        leftover.unlink(missing_ok=True)
