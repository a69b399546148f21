"""A lock beside a store: shared for reading, exclusive for writing, first come first served.

Two files stand there and are never removed:

The turnstile. Whoever wants the lock takes it first and keeps it while waiting, so that nobody
overtakes the one that waits, and a holder can see that somebody waits.
The lock itself, which holds what `lock_file` writes: who has it, and since when.
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
    Entered,
    LockPair,
    Wait,
    close_lock_file,
    open_lock_file,
    try_lock,
)
from herdbook.adapters.stores.file_checks import require_own, require_regular
from herdbook.adapters.system.os_errors import translate_os_error
from herdbook.domain.errors import HerdbookError, StoreBusy, StoreUnavailable

F = TypeVar("F", bound=LockFile)

A_MOMENT = 1.0
LONG_IN_THE_QUEUE = 0.5
"""After so many seconds one may look past the queue whether the lock is held at all."""


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

    def somebody_waits(self) -> bool:
        """Whether another process stands in the turnstile."""
        if not self.pair.try_turn():
            return True
        self.pair.pass_turn()
        return False

    def is_at(self, path: Path) -> bool:
        """Whether the lock file that is held is the one at a path."""
        return self.pair.is_at(path)

    def is_ours(self) -> bool:
        """Whether this process took it; a forked child has only inherited it."""
        return os.getpid() == self.pair.pid

    def release(self) -> None:
        """Let go; in a forked child nothing is done, for the lock is its parent's."""
        if not self.is_ours():
            return
        try:
            self.file.unsign(write=self.write)
        except OSError as error:
            import logging  # noqa: PLC0415 - costs a command more than the rest of this file

            logging.getLogger(__name__).warning(
                "could not strike our name out of a lock file: %s", error
            )
        finally:
            self._put_back(self.pair)


class FileLock(Generic[F]):
    """The lock of one store, as this process sees it. One thread at a time may take it.

    `place` is the store that errors speak of. With `keep_open` the two files stay open between
    uses, until `close`. `before_opening` is called before they are opened, and may refuse that.
    `ring` wakes holders that only keep the lock for their next use.
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
        ring: Callable[[list[str]], None] | None = None,
    ) -> None:
        self._place = str(place)
        self._turn = turn
        self._lock = lock
        self._kind = kind
        self._keep_open = keep_open
        self._before_opening = before_opening
        self._ring = ring
        self._spare: LockPair | None = None
        self._given_up: dict[bool, Wait] = {}

    def take(
        self, *, write: bool, patience: float, bell: str | None = None, sign: bool = True
    ) -> Hold[F]:
        """Hold the lock, or raise StoreBusy when it is not to be had within `patience` seconds.

        `bell` is where to wake this process when somebody waits for it to let go. Without `sign`
        the caller writes into the lock file itself who holds it.
        """
        begun = monotonic()
        hold = self._taken(begun + patience, write=write, bell=bell, sign=sign)
        if hold is None:
            raise self.busy(monotonic() - begun)
        return hold

    def take_again(self) -> Hold[F] | None:
        """Hold the lock to write, as last time, if nobody is in the way; signs nothing.

        Only where the files are kept open. It does the least that a lock can take, for those who
        take it thousands of times.
        """
        pair = self._spare
        if pair is None or self._given_up or monotonic() >= pair.seen_until:
            return None
        if pair.pid != os.getpid():  # forked by something that does not tell Python
            return None
        self._spare = None
        try:
            entered = pair.enter(fcntl.LOCK_EX)
            if entered is not Entered.NEITHER:
                pair.pass_turn()
            if entered is Entered.LOCKED:
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
        return self._taken(monotonic(), write=write, bell=None, sign=sign)

    def is_held(self) -> bool:
        """Whether somebody holds the lock for writing; makes no file."""
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
        return StoreBusy(self._place, round(waited, 1), holder.described(), holder.since)

    def close(self) -> None:
        """Close the files that were kept open."""
        spare, self._spare = self._spare, None
        if spare is not None and spare.pid == os.getpid():
            spare.close()

    def _taken(self, until: float, *, write: bool, bell: str | None, sign: bool) -> Hold[F] | None:
        """The lock, if it comes in time and its file is still the one in use."""
        try:
            while (hold := self._hold_in_turn(until, write=write)) is not None:
                try:
                    if self._is_in_place(hold.pair):
                        if sign:
                            hold.file.sign(write=write, bell=bell)
                        return hold
                except BaseException:
                    hold.release()
                    raise
                hold.release()
                self.close()
        except HerdbookError:
            raise
        except OSError as error:
            raise translate_os_error(error, self._place) from error
        return None

    def _is_in_place(self, pair: LockPair) -> bool:
        """Somebody may have put another lock file there while we waited for this one.

        One that was in place a moment ago, and is kept open, is taken to be there still.
        """
        now = monotonic()
        if self._keep_open and now < pair.seen_until:
            return True
        pair.seen_until = now + A_MOMENT
        return pair.is_at(self._lock)

    def _hold_in_turn(self, until: float, *, write: bool) -> Hold[F] | None:
        """The lock, if it comes in time; an interrupt leaves nothing of it held."""
        operation = fcntl.LOCK_EX if write else fcntl.LOCK_SH
        wait = self._given_up.pop(write, None) if self._given_up else None
        if wait is None or not wait.resume():
            pair = self._pair()
            try:
                entered = pair.enter(operation)
                if entered is Entered.LOCKED:
                    if not pair.has_room:
                        self._make_room(pair)
                    pair.pass_turn()
                    return self._hold(pair, write=write)
            except BaseException:
                pair.close()
                raise
            wait = self._queue(pair, operation, has_turn=entered is Entered.TURN)
        try:
            arrived = self._await(wait, until, operation)
            return None if arrived is None else self._hold(arrived, write=write)
        except BaseException:
            wait.leave()
            raise

    def _hold(self, pair: LockPair, *, write: bool) -> Hold[F]:
        return Hold(pair, self._kind(pair.lock), self._put_back, write=write)

    def _await(self, wait: Wait, until: float, operation: int) -> LockPair | None:
        past = None
        while past is None and (left := until - monotonic()) > 0:
            if wait.arrives(min(left, LONG_IN_THE_QUEUE)):
                return wait.pair
            past = self._pair_past_the_queue(operation)
        if wait.give_up():
            self._given_up[operation == fcntl.LOCK_EX] = wait
            return past
        if past is not None:
            past.close()
        return wait.pair

    def _pair_past_the_queue(self, operation: int) -> LockPair | None:
        """The lock, if nobody at all holds it: then the one whose turn it is may be stopped."""
        pair = self._open_pair()
        try:
            if try_lock(pair.lock, fcntl.LOCK_EX) and try_lock(pair.lock, operation):
                self._make_room(pair)
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
            on_arrival=self._make_room,
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
        if self._ring is not None:
            self._ring([each.bell for each in self._kind(pair.lock).holders() if each.bell])

    def _make_room(self, pair: LockPair) -> None:
        self._kind(pair.lock).make_room()
        pair.has_room = True

    def _open(self, path: Path) -> int:
        require_regular(path, self._place)
        try:
            descriptor = open_lock_file(path)
        except (PermissionError, IsADirectoryError) as error:
            raise self._no_lock(path, error) from error
        except OSError as error:
            if error.errno not in {EROFS, ELOOP}:
                raise
            raise self._no_lock(path, error) from error
        try:
            require_own(os.fstat(descriptor), path, self._place)
        except BaseException:
            close_lock_file(descriptor)
            raise
        return descriptor

    def _no_lock(self, path: Path, error: OSError) -> StoreUnavailable:
        reason = f"it needs {path.name} beside it as a lock, which cannot be opened"
        return StoreUnavailable(self._place, f"{reason} ({error.strerror})")
