"""The feed: the changes of a space after a position, as they are committed.

Everybody who waits for changes waits here. A wake-up ends the wait. The entries that it carries are
taken from it if they follow those that the reader has; everything else is read from the journal,
after the reader's own position.
"""

from typing import Self

from herdbook.domain.clock import Stamp
from herdbook.domain.journal import JournalEntry
from herdbook.ports.engine.store import Store
from herdbook.ports.engine.wakeups import LOOK, Listener
from herdbook.ports.unit_of_work.run import read
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services.journal.follower_cursor import FollowerCursor

PAGE = 200
"""How many entries are read at once."""
MOST_CARRIED = 2_000
"""How many entries of rings are kept for who waits and does not take."""


class Waiter:
    """Waits for changes of a space; a context manager that closes itself.

    It listens from the first wait on: who does not wait needs no socket.
    """

    def __init__(self, store: Store, space: str, *, look: float = LOOK) -> None:
        self.store, self.space = store, space
        self._look = look
        self._listener: Listener | None = None

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for a commit, a look or the end of the time; whether there is reason to read.

        The first call returns at once: what was committed before it did not ring.
        """
        if self._listener is None:
            self.fileno()
            return True
        return self._listener.wait(timeout)

    def fileno(self) -> int:
        """A descriptor that can be read after a commit; then call `wait(0)`, and read."""
        if self._listener is None:
            self._listener = self.store.wakeups.listen(self.space, look=self._look)
        return self._listener.fileno()

    def wake(self) -> None:
        """End the wait of another thread."""
        if self._listener is not None:
            self._listener.wake()

    def close(self) -> None:
        """Stop listening."""
        if self._listener is not None:
            self._listener.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Feed(Waiter):
    """A reader of the journal of a space, and its position: the number of the last entry it has.

    Each entry is given once, in order. Call `take` until there is nothing, then `wait`, and so on.
    When `is_replaced`, nothing more is given: an earlier copy of the store, or another one, has
    taken its place, and the position means nothing there. `mark` is the stamp of the last entry.
    """

    def __init__(
        self,
        store: Store,
        space: str,
        since: int,
        *,
        limit: int = PAGE,
        look: float = LOOK,
        cursor: FollowerCursor | None = None,
        mark: Stamp | None = None,
    ) -> None:
        """Begin after an entry, whose stamp is `mark` if the reader has seen it.

        A cursor, which the caller releases, holds what was not taken.
        """
        super().__init__(store, space, look=look)
        self.since = self.last = since
        self.mark = mark
        self.is_replaced = False
        self._is_marked = False
        self._limit = limit
        self._cursor = cursor
        self._must_read = True
        self._carried: dict[int, JournalEntry] = {}

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for a commit, a look or the end of the time; whether there is reason to take."""
        is_first = self._listener is None
        is_rung = super().wait(timeout)
        rings = self._listener.rings() if self._listener and is_rung and not is_first else None
        if rings is None:
            self._must_read = True
        for ring in rings or ():
            if ring.space == self.space:
                self.last = max(self.last, ring.seq)
                self._carried |= {each.seq: each for each in ring.entries if each.seq > self.since}
        if len(self._carried) > MOST_CARRIED:
            self._carried, self._must_read = {}, True
        return is_rung

    @property
    def is_lost(self) -> bool:
        """Whether it is replaced, or was so before the first look of one who began at an entry."""
        return self.is_replaced or self.last < self.since

    def take(self, *, look: bool = False) -> list[JournalEntry]:
        """The next entries, at most a page, or none; `last` is then the number of the last of all.

        Entries that were rung for are given without reading the store, and if it was not rung for
        any others, there are none; with `look` the store is read all the same. Who takes again has
        done with the entries before. Raises JournalPruned if the next entry was folded.
        """
        if self._cursor is not None:
            self._cursor.move(self.since)
        if self._listener is not None and not self._must_read and not look:
            page = self._take_carried()
            if page or self.since >= self.last:
                return page
        question = _entries if self._is_marked else _first_entries
        page, self.last, found = read(self.store, self.space, question, self.since, self._limit)
        # An entry that was folded since is taken for the one that the reader has seen.
        is_other = found is not None and self.mark not in (None, found)
        self._is_marked, self.mark = True, self.mark or found
        self.is_replaced = is_other or (self.mark is not None and self.last < self.since)
        if self.is_replaced:
            return []
        if page:
            self.since, self.mark = page[-1].seq, page[-1].at
        self._must_read = self.since < self.last
        self._forget_carried()
        return page

    def _take_carried(self) -> list[JournalEntry]:
        """What rings have carried, as far as it follows on the last entry without a gap."""
        page: list[JournalEntry] = []
        while len(page) < self._limit and (entry := self._carried.pop(self.since + 1, None)):
            page.append(entry)
            self.since, self.mark = entry.seq, entry.at
        self.last = max(self.last, self.since)  # a ring may carry more than it was rung for
        return page

    def _forget_carried(self) -> None:
        """Keep of what rings have carried only what is to come and what the store has as well."""
        coming = range(self.since + 1, self.last + 1)
        self._carried = {seq: each for seq, each in self._carried.items() if seq in coming}


EntriesAnswer = tuple[list[JournalEntry], int, Stamp | None]


def _entries(uow: UnitOfWork, since: int, limit: int) -> EntriesAnswer:
    """A page after an entry, and the number of the last one."""
    return uow.journal.since(since, limit=limit), uow.journal.last(), None


def _first_entries(uow: UnitOfWork, since: int, limit: int) -> EntriesAnswer:
    """The same, and the stamp of that entry itself, if it is there."""
    page, last, _ = _entries(uow, since, limit)
    before = uow.journal.before(since + 1, limit=1) if since else []
    return page, last, before[0].at if before and before[0].seq == since else None
