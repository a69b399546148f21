"""The rows that have changed since a position: as they are now, and as they were.

They are read from the journal once, from its end down to the position. Those of another position
follow from them by the entries in between, so that whoever goes through the past step by step reads
each entry once.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, TypeVar

from herdbook.domain.journal import JournalEntry
from herdbook.domain.rewind import Values, redo_entry, undo_entry
from herdbook.ports.engine.codec import decode_journalled, encode_row
from herdbook.ports.engine.dictionary import JOURNAL
from herdbook.ports.engine.kinds import Dictionary, Kind
from herdbook.ports.engine.paging import PAGE
from herdbook.ports.engine.query import Query, Range, above, any_of, find, matches
from herdbook.ports.engine.store import Session
from herdbook.ports.unit_of_work.readiness_projection import SOURCES

E = TypeVar("E")
_SOURCES = {kind.name for kind in SOURCES}


class RowTable:
    """Rows of one kind in memory, found as a store finds them."""

    def __init__(self, rows: Iterable[Any]) -> None:
        self._rows = [row for row in rows if row is not None]
        self._by_values: dict[tuple[str, ...], dict[tuple[Any, ...], list[Any]]] = {}

    def matching(self, query: Query[E]) -> list[E]:
        """The rows that match a query, in no order."""
        names = tuple(name for name, _ in query.equals)
        index = self._by_values.get(names)
        if index is None:
            index = {}
            for row in self._rows:
                index.setdefault(tuple(getattr(row, name) for name in names), []).append(row)
            self._by_values[names] = index  # whole, as others may look for it at the same time
        found = index.get(tuple(value for _, value in query.equals), ())
        return [row for row in found if matches(query, row)]


class PastRows:
    """The rows of a kind that have changed since a position, by key; None where there is none.

    `values` are those of then, encoded, and `newest` is the last entry about each of them.
    """

    def __init__(self, kind: Kind[Any]) -> None:
        self.kind = kind
        self.now: dict[str, Any] = {}
        self.then: dict[str, Any] = {}
        self.values: dict[str, Values | None] = {}
        self.newest: dict[str, int] = {}
        self.lost: set[str] = set()
        """The keys of rows that were there and of which the journal holds no more."""

    @cached_property
    def table_now(self) -> RowTable:
        """The rows as they are now."""
        return RowTable(self.now.values())

    @cached_property
    def table_then(self) -> RowTable:
        """The rows as they were."""
        return RowTable(self.then.values())

    def copy(self) -> "PastRows":
        """The same rows, to be changed."""
        found = PastRows(self.kind)
        found.now, found.then, found.values = {**self.now}, {**self.then}, {**self.values}
        found.newest, found.lost = {**self.newest}, {*self.lost}
        return found

    def take(self, session: Session, keys: Iterable[str]) -> None:
        """Take rows that were then as they are now, unless they are known already."""
        missing = [key for key in dict.fromkeys(keys) if key not in self.values]
        for key, row in zip(missing, session.get(self.kind, missing), strict=True):
            self.now[key] = row
            self.values[key] = None if row is None else encode_row(self.kind, row, reveal=True)

    def drop(self, keys: Iterable[str]) -> None:
        """Forget rows that have not changed since."""
        for key in keys:
            for each in (self.now, self.then, self.values, self.newest):
                each.pop(key, None)
            self.lost.discard(key)

    def decode(self, keys: Iterable[str]) -> None:
        """Make rows of their values."""
        for key in keys:
            values = self.values[key]
            is_lost = values is not None and self.kind.key not in values
            (self.lost.add if is_lost else self.lost.discard)(key)
            is_known = values is not None and not is_lost
            self.then[key] = decode_journalled(self.kind, values or {})[0] if is_known else None

    def undo(self, entries: Iterable[JournalEntry]) -> None:
        """Take entries back, the newest first."""
        for entry in entries:
            self.newest.setdefault(entry.key, entry.seq)
            self.values[entry.key] = undo_entry(entry, self.values[entry.key])

    def redo(self, entries: Iterable[JournalEntry]) -> None:
        """Apply entries again, the oldest first."""
        for entry in entries:
            self.values[entry.key] = redo_entry(entry, self.values[entry.key])

    @property
    def is_told_whole(self) -> bool:
        """Whether the journal has all values of its rows: neither a key alone nor a mask."""
        return not self.kind.append_only and not self.kind.secrets


class PastChanges:
    """What has changed from a position `seq` until `head`, the last entry of a session."""

    def __init__(self, seq: int, head: int, kinds: dict[str, PastRows]) -> None:
        self.seq = seq
        self.head = head
        self.kinds = kinds
        self.derived: dict[str, dict[Any, Any]] = {}
        """The rows that were computed for this position, by kind."""

    @property
    def size(self) -> int:
        """How many rows it holds."""
        held = sum(len(rows.now) for rows in self.kinds.values())
        return held + sum(map(len, self.derived.values()))


class ChangedKinds:
    """The kinds of some changes, copied where they are changed further; `touched` has the keys."""

    def __init__(self, known: PastChanges, dictionary: Dictionary) -> None:
        self.known = known
        self.rows = {**known.kinds}
        self.touched: dict[str, set[str]] = {}
        self._dictionary = dictionary

    def group(self, page: Sequence[JournalEntry]) -> Iterator[tuple[PastRows, list[JournalEntry]]]:
        """The entries of a page by kind, each with the rows that they are about."""
        for name in {entry.entity for entry in page}:
            if name not in self.touched:
                rows = self.rows.get(name)
                kind = self._dictionary.kinds[name]
                self.rows[name] = PastRows(kind) if rows is None else rows.copy()
            entries = [entry for entry in page if entry.entity == name]
            self.touched.setdefault(name, set()).update(entry.key for entry in entries)
            yield self.rows[name], entries

    def changes_at(self, seq: int, head: int) -> PastChanges:
        """The changes since a position: what was touched becomes rows again.

        What was computed stays as long as nothing was touched that it is computed from.
        """
        for name, keys in self.touched.items():
            rows = self.rows[name]
            rows.decode(key for key in keys if key in rows.values)
        found = PastChanges(seq, head, self.rows)
        if seq == self.known.seq or not _SOURCES & self.touched.keys():
            found.derived = self.known.derived
        return found


class ChangeReader:
    """Reads from the journal of a session what has changed since positions."""

    def __init__(self, session: Session, dictionary: Dictionary) -> None:
        self._session = session
        self._dictionary = dictionary
        self._head = 0 if session.head is None else session.head.seq

    def read(self, seq: int) -> PastChanges:
        """What has changed since a position: the whole journal after it, read once."""
        return self._step_back(PastChanges(self._head, self._head, {}), seq)

    def follow(self, known: PastChanges, seq: int) -> PastChanges:
        """What has changed since a position, from what is known of another one."""
        if known.head < self._head:
            known = self._catch_up(known)
        if seq < known.seq:
            return self._step_back(known, seq)
        return self._step_on(known, seq) if seq > known.seq else known

    def rows_then(self, kind: Kind[Any], keys: Sequence[str], seq: int) -> PastRows:
        """Some rows of a kind as they were: only their own entries are read."""
        rows = PastRows(kind)
        rows.take(self._session, keys)
        where = {"entity": kind.name, "key": any_of(map(str, keys)), "seq": above(seq)}
        entries = self._session.select(find(JOURNAL, where))
        rows.undo(sorted(entries, key=lambda each: each.seq, reverse=True))
        rows.decode(keys)
        return rows

    def _step_back(self, known: PastChanges, seq: int) -> PastChanges:
        """The changes since an earlier position: entries are taken back, the newest first."""
        kinds = ChangedKinds(known, self._dictionary)
        for page in self._pages(seq, known.seq, descending=True):
            for rows, entries in kinds.group(page):
                rows.take(self._session, (entry.key for entry in entries))
                rows.undo(entries)
        return kinds.changes_at(seq, self._head)

    def _step_on(self, known: PastChanges, seq: int) -> PastChanges:
        """The changes since a later position: entries are applied again, the oldest first.

        What has not changed since is as it is now. Where the journal has a key alone, or a mask in
        place of a secret, the entries after the position are taken back from now.
        """
        kinds = ChangedKinds(known, self._dictionary)
        for page in self._pages(known.seq, seq, descending=False):
            for rows, entries in kinds.group(page):
                if rows.is_told_whole:
                    rows.redo(entries)
        for name, keys in kinds.touched.items():
            rows = kinds.rows[name]
            rows.drop([key for key in keys if rows.newest[key] <= seq])
            left = [key for key in keys if key in rows.values]
            if left and not rows.is_told_whole:
                rows.values.update(self.rows_then(rows.kind, left, seq).values)
        return kinds.changes_at(seq, self._head)

    def _catch_up(self, known: PastChanges) -> PastChanges:
        """The changes since the same position, with what was written since they were read.

        Rows that had changed before are other ones now; of the others, what is new is taken back.
        """
        kinds = ChangedKinds(known, self._dictionary)
        for page in self._pages(known.head, self._head, descending=True):
            for rows, entries in kinds.group(page):
                had = known.kinds.get(rows.kind.name, rows).then
                again = list({entry.key for entry in entries if entry.key in had})
                rows.now.update(zip(again, self._session.get(rows.kind, again), strict=True))
                fresh = [entry for entry in entries if entry.key not in had]
                rows.take(self._session, (entry.key for entry in fresh))
                rows.undo(fresh)
                for entry in entries:
                    rows.newest[entry.key] = max(entry.seq, rows.newest[entry.key])
        return kinds.changes_at(known.seq, self._head)

    def _pages(self, low: int, high: int, *, descending: bool) -> Iterator[list[JournalEntry]]:
        """The entries after one number and up to another, page by page."""
        if low >= high:
            return
        bounds = {"seq": Range(low=low, above=True, high=high, through=True)}
        query = find(JOURNAL, bounds, descending=descending, limit=PAGE)
        while page := self._session.select(query):
            yield page
            query = query.next_page(page[-1])
