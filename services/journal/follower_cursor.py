"""The cursor of somebody who follows the journal for as long as a process lives.

It is held before the first entry is read, so that nothing is folded that the follower has not read
yet. Moving it is a durable write, so it is moved rarely: what it is behind only delays a fold. It
is no content of the space, so the clock of the space does not tick, and neither copies nor backups
have it. The cursor of a follower that was killed expires by itself.

A follower that cannot write goes on without one: in a store that is read-only, full, or laid out
for another version.
"""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress

from herdbook.domain.errors import HerdbookError
from herdbook.domain.journal import FOLLOWER
from herdbook.domain.retention import FOLLOWER_KEPT, FOLLOWER_MOVED, FOLLOWER_RENEWED
from herdbook.ports.engine.dictionary import HEADS, ROWS_VERSION
from herdbook.ports.engine.store import Store
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork, unit_of_work

OpenStore = Callable[[], AbstractContextManager[Store]]


class FollowerCursor:
    """Holds the journal of a space for one follower; `holder` tells people who that is.

    Raises nothing where it cannot be held: a follower that finds a gap is told so when it reads.
    """

    def __init__(
        self,
        open_store: OpenStore,
        space: str,
        holder: str,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._open_store = open_store
        self._space = space
        self._holder = holder
        self._clock = clock
        self._name: str | None = None
        self._seq = -1
        self._moved_at = clock() - FOLLOWER_RENEWED.total_seconds()

    def move(self, seq: int) -> None:
        """Say that everything up to this number was read; written down only if it is time to."""
        idle = self._clock() - self._moved_at
        wait = FOLLOWER_RENEWED if seq == self._seq else FOLLOWER_MOVED
        if idle < wait.total_seconds():
            return
        self._moved_at = self._clock()
        with suppress(HerdbookError), self._open_store() as store:
            if _is_writable(store, self._space):
                self._name = self._name or f"{FOLLOWER}{store.ids()}"
                self._write(store, seq)
                self._seq = seq

    def release(self) -> None:
        """Hold nothing any more."""
        if self._name is None:
            return
        with suppress(HerdbookError), self._open_store() as store:
            self._write(store, None)
        self._name = None

    def _write(self, store: Store, seq: int | None) -> None:
        assert self._name is not None  # noqa: S101 - both callers have set it
        with unit_of_work(store, self._space) as uow:
            if seq is None:
                uow.cursors.drop(self._name)
            else:
                until = uow.now + FOLLOWER_KEPT
                uow.cursors.hold(self._name, seq, self._holder, expires_at=until)
            _commit_beside_journal(uow)


def _is_writable(store: Store, space: str) -> bool:
    """Whether writing a cursor would neither begin a space nor rewrite the rows of an older one."""
    with store.transaction(space, write=False) as session:
        head = session.head
    return head is not None and (head.rows_version or 0) >= ROWS_VERSION


def _commit_beside_journal(uow: UnitOfWork) -> None:
    """Commit what is no content: the clock of the space stays where it is."""
    assert uow.session.head is not None  # noqa: S101 - a space without one was refused
    uow.session.replace(HEADS, [uow.session.head])
    uow.session.commit()
