"""A lock beside a store: shared for reading, exclusive for writing, first come first served.

It consists of two files that are never removed:

- The turn file. A process that wants the lock locks this file first and keeps it locked while it
  waits, so that nobody overtakes it, and a holder can see that somebody waits.
- The lock file itself, in which `lock_file` records who holds it, and since when.
"""

import fcntl
import os
from collections.abc import Callable
from errno import ELOOP, EROFS
from pathlib import Path
from time import monotonic
from typing import Generic, TypeVar

from herdbook.adapters.locks.lock_file import LockFile, holder_of
from herdbook.adapters.locks.wait_queue import (
    EnterResult,
    LockPair,
    Wait,
    close_lock_file,
    open_lock_file,
    try_lock,
)
from herdbook.adapters.stores.file_checks import require_own, require_regular
from herdbook.adapters.system.os_errors import translate_os_error, translate_os_errors
from herdbook.domain.errors import StoreBusy, StoreUnavailable

F = TypeVar("F", bound=LockFile)

RECHECK_SECONDS = 1.0
"""For how long a lock file that was seen in place is assumed to be there."""
QUEUE_CHECK_SECONDS = 0.5
"""After so many seconds in the queue, a waiter checks whether the lock is held at all."""


class Hold(Generic[F]):
    """The lock, held by this process until `release`."""

    def __init__(
        self, pair: LockPair, file: F, put_back: Callable[[LockPair], None], *, write: bool
    ) -> None:
        self.descriptor = pair.lock
        self.write = write
        self.file = file
        self.pair = pair
        self._put_back = put_back

    def has_waiters(self) -> bool:
        """Whether another process holds the turn, and so waits for the lock."""
        if not self.pair.try_turn():
            return True
        self.pair.pass_turn()
        return False

    def is_at(self, path: Path) -> bool:
        """Whether the lock file that is held is the one at a path."""
        return self.pair.is_at(path)

    def is_ours(self) -> bool:
        """Whether this process took the lock; a forked child has only inherited it."""
        return os.getpid() == self.pair.pid

    def release(self) -> None:
        """Release the lock; does nothing in a forked child, because the lock is its parent's."""
        if not self.is_ours():
            return
        try:
            self.file.unsign(write=self.write)
        except OSError as error:
            import logging  # noqa: PLC0415 - costs a command more than the rest of this file

            logging.getLogger(__name__).warning(
                "could not remove our name from a lock file: %s", error
            )
        finally:
            self._put_back(self.pair)


class FileLock(Generic[F]):
    """The lock of one store in this process. One thread at a time may take it.

    `place` is the store that errors name. With `keep_open` the two files stay open between uses,
    until `close`. `before_opening` is called before they are opened, and may refuse that. `wake`
    wakes holders that only keep the lock for their next use.
    """

    def __init__(
        self,
        place: Path,
        *,
        turn: Path,
        lock: Path,
        kind: type[F],
        keep_open: bool = False,
        before_opening: Callable[[], object] | None = None,
        wake: Callable[[list[str]], None] | None = None,
    ) -> None:
        self._place = str(place)
        self._turn = turn
        self._lock = lock
        self._kind = kind
        self._keep_open = keep_open
        self._before_opening = before_opening
        self._wake = wake
        self._spare: LockPair | None = None
        self._given_up: dict[bool, Wait] = {}

    def take(
        self,
        *,
        write: bool,
        patience: float,
        wakeup_address: str | None = None,
        sign: bool = True,
        prepare: Callable[[], None] | None = None,
    ) -> Hold[F]:
        """Hold the lock, or raise StoreBusy when it is not to be had within `patience` seconds.

        `wakeup_address` is where to wake this process when somebody waits for the lock. Without
        `sign` the caller itself writes into the lock file who holds it. Who has to wait is asked to
        `prepare` when it is next, and not before.
        """
        begun = monotonic()
        hold = self._acquire(
            begun + patience,
            write=write,
            wakeup_address=wakeup_address,
            sign=sign,
            prepare=prepare,
        )
        if hold is None:
            raise self.busy(monotonic() - begun)
        return hold

    def take_again(self) -> Hold[F] | None:
        """Hold the lock for writing again if nobody is in the way; records no holder.

        Only if the files are kept open. It makes as few system calls as a lock can, for callers
        that take it thousands of times.
        """
        pair = self._spare
        if pair is None or self._given_up or monotonic() >= pair.seen_until:
            return None
        if pair.pid != os.getpid():  # forked by something that does not tell Python
            return None
        self._spare = None
        try:
            entered = pair.enter(fcntl.LOCK_EX)
            if entered is not EnterResult.NEITHER:
                pair.pass_turn()
            if entered is EnterResult.LOCKED:
                hold: Hold[F] | None = pair.hold
                if hold is None:
                    hold = pair.hold = self._hold(pair, write=True)
                return hold
        except BaseException:
            pair.close()
            raise
        self._spare = pair
        return None

    def try_take(self, *, write: bool, sign: bool = True) -> Hold[F] | None:
        """Hold the lock if nobody else does; never waits."""
        return self._acquire(monotonic(), write=write, wakeup_address=None, sign=sign)

    def is_held(self) -> bool:
        """Whether somebody holds the lock for writing; creates no file."""
        if require_regular(self._lock, self._place) is None:
            return False
        try:
            descriptor = open_lock_file(self._lock, create=False)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise translate_os_error(error, self._place) from error
        try:
            return not try_lock(descriptor, fcntl.LOCK_SH)
        finally:
            close_lock_file(descriptor)

    def busy(self, waited: float) -> StoreBusy:
        """The error that names who holds the lock."""
        holder = holder_of(self._lock, self._kind)
        if holder is None:
            return StoreBusy(self._place, round(waited, 1))
        return StoreBusy(self._place, round(waited, 1), holder.describe(), holder.since)

    def close(self) -> None:
        """Close the files that were kept open."""
        spare, self._spare = self._spare, None
        if spare is not None and spare.pid == os.getpid():
            spare.close()

    def _acquire(
        self,
        until: float,
        *,
        write: bool,
        wakeup_address: str | None,
        sign: bool,
        prepare: Callable[[], None] | None = None,
    ) -> Hold[F] | None:
        """The lock, if it comes in time and its file is still the one at its path."""
        with translate_os_errors(self._place):
            while (hold := self._wait_for_hold(until, prepare, write=write)) is not None:
                try:
                    if self._is_in_place(hold.pair):
                        if sign:
                            hold.file.sign(write=write, wakeup_address=wakeup_address)
                        return hold
                except BaseException:
                    hold.release()
                    raise
                hold.release()
                self.close()
        return None

    def _is_in_place(self, pair: LockPair) -> bool:
        """Whether the lock file is still at its path: it may have been replaced while we waited.

        A file that is kept open and was in place a moment ago is assumed to be there still.
        """
        now = monotonic()
        if self._keep_open and now < pair.seen_until:
            return True
        pair.seen_until = now + RECHECK_SECONDS
        return pair.is_at(self._lock)

    def _wait_for_hold(
        self, until: float, prepare: Callable[[], None] | None, *, write: bool
    ) -> Hold[F] | None:
        """The lock, if it comes in time; an interrupt leaves nothing locked."""
        operation = fcntl.LOCK_EX if write else fcntl.LOCK_SH
        wait = self._given_up.pop(write, None) if self._given_up else None
        if wait is None or not wait.resume():
            pair = self._pair()
            try:
                entered = pair.enter(operation)
                if entered is EnterResult.LOCKED:
                    if not pair.is_preallocated:
                        self._preallocate(pair)
                    pair.pass_turn()
                    return self._hold(pair, write=write)
            except BaseException:
                pair.close()
                raise
            wait = self._queue(pair, operation, has_turn=entered is EnterResult.TURN)
        try:
            arrived = self._await(wait, until, operation, prepare)
            return None if arrived is None else self._hold(arrived, write=write)
        except BaseException:
            wait.leave()
            raise

    def _hold(self, pair: LockPair, *, write: bool) -> Hold[F]:
        return Hold(pair, self._kind(pair.lock), self._put_back, write=write)

    def _await(
        self, wait: Wait, until: float, operation: int, prepare: Callable[[], None] | None
    ) -> LockPair | None:
        past = None
        while past is None and (left := until - monotonic()) > 0:
            seconds = min(left, QUEUE_CHECK_SECONDS)
            if prepare is not None and wait.wait_for_turn(seconds):
                prepare()
                prepare = None
                continue
            if prepare is None and wait.wait_for_lock(seconds):
                return wait.pair
            past = self._open_unheld_pair(operation)
        if wait.give_up():
            self._given_up[operation == fcntl.LOCK_EX] = wait
            return past
        if past is not None:
            past.close()
        return wait.pair

    def _open_unheld_pair(self, operation: int) -> LockPair | None:
        """The lock if nobody at all holds it: then the process whose turn it is may be stopped."""
        pair = self._open_pair()
        try:
            if try_lock(pair.lock, fcntl.LOCK_EX) and try_lock(pair.lock, operation):
                self._preallocate(pair)
                return pair
        except BaseException:
            pair.close()
            raise
        pair.close()
        return None

    def _queue(self, pair: LockPair, operation: int, *, has_turn: bool) -> Wait:
        return Wait(
            pair,
            operation,
            has_turn=has_turn,
            before_blocking=self._wake_holders,
            on_arrival=self._preallocate,
        )

    def _pair(self) -> LockPair:
        spare, self._spare = self._spare, None
        if spare is not None and spare.pid == os.getpid():
            return spare
        return self._open_pair()

    def _open_pair(self) -> LockPair:
        if self._before_opening is not None:
            self._before_opening()
        turn = self._open(self._turn)
        try:
            return LockPair(turn, self._open(self._lock))
        except BaseException:
            close_lock_file(turn)
            raise

    def _put_back(self, pair: LockPair) -> None:
        if self._keep_open and self._spare is None:
            pair.unlock()
            self._spare = pair
        else:
            pair.close()

    def _wake_holders(self, pair: LockPair) -> None:
        if self._wake is not None:
            self._wake(
                [
                    each.wakeup_address
                    for each in self._kind(pair.lock).holders()
                    if each.wakeup_address
                ]
            )

    def _preallocate(self, pair: LockPair) -> None:
        self._kind(pair.lock).preallocate()
        pair.is_preallocated = True

    def _open(self, path: Path) -> int:
        require_regular(path, self._place)
        try:
            descriptor = open_lock_file(path)
        except (PermissionError, IsADirectoryError) as error:
            raise self._lock_unavailable(path, error) from error
        except OSError as error:
            if error.errno not in {EROFS, ELOOP}:
                raise
            raise self._lock_unavailable(path, error) from error
        try:
            require_own(os.fstat(descriptor), path, self._place)
        except BaseException:
            close_lock_file(descriptor)
            raise
        return descriptor

    def _lock_unavailable(self, path: Path, error: OSError) -> StoreUnavailable:
        reason = f"it needs {path.name} beside it as a lock, which cannot be opened"
        return StoreUnavailable(self._place, f"{reason} ({error.strerror})")
