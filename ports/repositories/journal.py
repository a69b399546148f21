"""Named queries for the journal, its cursors, and the stored results of operations."""

import re
from collections.abc import Container, Iterator
from datetime import datetime
from typing import Any, Final, NamedTuple

from herdbook.domain.entity import evolve
from herdbook.domain.errors import InvalidValue, JournalPruned
from herdbook.domain.journal import Head, JournalCursor, JournalEntry, OperationResult
from herdbook.domain.retention import MOST_CURSORS, OPERATIONS_KEPT
from herdbook.ports.engine.kinds import Kind
from herdbook.ports.engine.query import above, between, find, up_to
from herdbook.ports.repositories.base import PAGE, Repository

_CURSOR_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@/-]{0,63}")


class JournalWindow(NamedTuple):
    """Entries of a window of time, newest first; all are known that are after `known_since`.

    If that is later than the window begins, the journal begins there, or more were not read, and
    it `is_cut`.
    """

    entries: list[JournalEntry]
    known_since: datetime
    is_cut: bool = False


class Journal(Repository[JournalEntry]):
    """The journal of a space: every change, in order, from the first that was not folded."""

    def since(self, seq: int, *, limit: int = PAGE) -> list[JournalEntry]:
        """The entries after this number, in order.

        A reader that has seen entry n never later finds a smaller one: numbers are assigned and
        become visible in the same order. Raises JournalPruned if the next entry was folded, so that
        no reader is given a gap without being told.
        """
        page = self.select(find(self.kind, {"seq": above(seq)}, limit=limit))
        if not (page and page[0].seq == seq + 1):
            self.require(seq)
        return page

    def before(self, seq: int, *, limit: int = PAGE) -> list[JournalEntry]:
        """The last entries before this number that are still there, in order."""
        query = find(self.kind, {"seq": between(None, seq)}, descending=True, limit=limit)
        return self.select(query)[::-1]

    def recent(self, limit: int) -> list[JournalEntry]:
        """The newest entries that are still there, in order."""
        return self.before(self.last() + 1, limit=limit)

    def newest_since(
        self, begin: datetime, entities: Container[str], *, most: int
    ) -> JournalWindow:
        """The entries about rows of these kinds after a time, among so many of the last ones."""
        found: list[JournalEntry] = []
        read = 0
        query = find(self.kind, descending=True, limit=min(PAGE, most))
        while page := self.select(query):
            read += len(page)
            found += [each for each in page if each.time > begin and each.entity in entities]
            if page[-1].time <= begin:
                return JournalWindow(found, begin)
            if read >= most:
                return JournalWindow(found, page[-1].time, is_cut=True)
            query = query.next_page(page[-1])
        head = self._head
        pruned_at = None if head is None else head.pruned_at
        return JournalWindow(found, begin if pruned_at is None else max(begin, pruned_at.wall))

    def require(self, seq: int) -> None:
        """Raise JournalPruned if entries after this number were folded."""
        head = self._head
        if head is not None and seq < head.pruned_to > 0:
            raise self.pruned_error(seq)

    def pruned_error(self, seq: int = 0, what: str = "") -> JournalPruned:
        """The error for a question about entries that were folded."""
        head = self._head
        since = None if head is None or head.pruned_at is None else head.pruned_at.wall
        return JournalPruned(self.uow.space, seq, self.pruned_to() + 1, since, what)

    def pruned_to(self) -> int:
        """The number of the last entry that was folded, 0 where none was."""
        head = self._head
        return head.pruned_to if head else 0

    def last(self) -> int:
        """The number of the last entry, 0 where there is none."""
        head = self._head
        return head.seq if head else 0

    def of_row(self, kind: Kind[Any], key: Any) -> list[JournalEntry]:
        """The changes of one row, in order; those that were folded are not among them."""
        return self.select(find(self.kind, {"entity": kind.name, "key": str(key)}))

    def of_tx(self, tx: str) -> list[JournalEntry]:
        """The changes of one transaction, in order: all of them, or none if it was folded."""
        return self.select(find(self.kind, {"tx": tx}))

    def all_entries(self) -> Iterator[JournalEntry]:
        """The whole journal, fetched page by page."""
        return self.select_all(find(self.kind, limit=PAGE))

    @property
    def _head(self) -> Head | None:
        return self.uow.session.head


class Cursors(Repository[JournalCursor]):
    """The positions of those who read the journal, by name; nothing after one is folded."""

    def hold(
        self, name: str, seq: int, holder: str, *, expires_at: datetime | None = None
    ) -> JournalCursor:
        """Hold the journal for a reader that has read up to this number; moves its cursor if any.

        Raises JournalPruned if the next entry was folded, and InvalidValue for a name that is none,
        for a position after the end, and if there are too many cursors.
        """
        if not _CURSOR_NAME.fullmatch(name):
            reason = "must be 1 to 64 letters, digits and . _ : @ / -, a letter or digit first"
            raise InvalidValue("cursor", reason)
        self.uow.journal.require(seq)
        last = self.uow.journal.last()
        if seq > last:
            raise InvalidValue("seq", f"is {seq}, and the journal ends at #{last}")
        known = self.find(name)
        if known is not None:
            return self.save(evolve(known, seq=seq, holder=holder, expires_at=expires_at))
        there = self.page(limit=MOST_CURSORS)
        is_full = len(there) >= MOST_CURSORS
        over = [each for each in there if not each.is_live(self.uow.now)]
        self.remove_all([each.id for each in over if is_full or each.is_follower])
        if is_full and not over:
            reason = f"{MOST_CURSORS} cursors are held here already, and no more are taken"
            raise InvalidValue("cursor", reason)
        return self.add(JournalCursor(id=name, seq=seq, holder=holder, expires_at=expires_at))

    def advance(self, name: str, seq: int, *, expires_at: datetime | None = None) -> JournalCursor:
        """Move a cursor forward to what its reader has read; one further on stays where it is.

        Raises NotFound if nobody holds it, and what `hold` raises.
        """
        known = self.get(name)
        return self.hold(name, max(seq, known.seq), known.holder, expires_at=expires_at)

    def drop(self, name: str) -> bool:
        """Release a cursor; whether there was one."""
        known = self.find(name)
        if known is not None:
            self.remove(name)
        return known is not None

    def live(self) -> list[JournalCursor]:
        """The cursors that have not expired, those that have read least first."""
        there = (each for each in self.page(limit=MOST_CURSORS) if each.is_live(self.uow.now))
        return sorted(there, key=lambda each: (each.seq, each.id))


class Operations(Repository[OperationResult]):
    """The stored results of operations, so that repeating one applies it once."""

    def prune(self, now: datetime, limit: int = 100) -> None:
        """Remove some of the results that nobody will ask for again."""
        old = self.select(find(self.kind, {"at": up_to(now - OPERATIONS_KEPT)}, limit=limit))
        self.remove_all([operation.operation_id for operation in old])
