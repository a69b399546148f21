"""A space as it was at an earlier position of its journal, for reading only.

`PastSession` answers as the session of a store that stopped there, from the rows of today and the
journal: a row that has changed since is taken back entry by entry. Rows that are computed from
others are computed from those of then. What the journal does not know is refused, never answered
with what is true today.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import cached_property
from typing import Any, TypeVar

from herdbook.domain.entity import evolve
from herdbook.domain.errors import InvalidValue, JournalPruned
from herdbook.domain.grading import Experience
from herdbook.domain.journal import Head, Position
from herdbook.domain.plan.model import UNFINISHED
from herdbook.domain.rewind import AsOf
from herdbook.ports.engine.dictionary import JOURNAL, OPENINGS, SCORE_EVENTS, STANDINGS, TASKS
from herdbook.ports.engine.kinds import Kind
from herdbook.ports.engine.paging import PAGE, select_all
from herdbook.ports.engine.query import Query, Range, any_of, find, sort_and_page
from herdbook.ports.engine.store import Session, Store
from herdbook.ports.unit_of_work.past_cache import PastCache
from herdbook.ports.unit_of_work.past_rows import ChangeReader, PastChanges, PastRows, RowTable
from herdbook.ports.unit_of_work.positions import entry_stamp, find_position
from herdbook.ports.unit_of_work.projections import compute_queues, compute_standings
from herdbook.ports.unit_of_work.readiness_projection import QUEUES, Row
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork

E = TypeVar("E")

FEW = 100
"""Up to how many rows are looked up one by one; for more, the journal is read from there on."""


@contextmanager
def past_unit_of_work(
    store: Store,
    space: str,
    at: Position,
    *,
    experience: Experience | None = None,
    cache: PastCache | None = None,
) -> Iterator[UnitOfWork]:
    """Begin a unit of work on a space as it was; it cannot be written to.

    A `cache` keeps what was read for the next one. Raises what `resolve_position` raises.
    """
    with store.transaction(space, write=False) as session:
        as_of = resolve_position(session, space, at)
        past = PastSession(session, store, space, as_of, experience=experience, cache=cache)
        yield past.uow


def resolve_position(session: Session, space: str, at: Position, field: str = "at") -> AsOf:
    """The position that a number or a time means.

    Raises InvalidValue, under the name of the parameter, for one that comes after what the session
    reads, and JournalPruned for one whose following entries were folded.
    """
    head = session.head
    last = 0 if head is None else head.seq
    if isinstance(at, int) and at > last:
        raise InvalidValue(field, f"is #{at}, and the last entry is #{last}")
    if isinstance(at, datetime) and at > session.now:
        now = session.now.isoformat(timespec="seconds")
        raise InvalidValue(field, f"is {at.isoformat(timespec='seconds')}, which is after {now}")
    seq = find_position(session, at)
    if seq is None and head is not None:
        since = None if head.pruned_at is None else head.pruned_at.wall
        asked = at if isinstance(at, int) else 0
        what = f"what was there at {at if isinstance(at, int) else at.isoformat()} is not known"
        raise JournalPruned(space, asked, head.pruned_to + 1, since, what)
    return AsOf(seq or 0, at if isinstance(at, datetime) else position_time(session, seq or 0))


def position_time(session: Session, seq: int) -> datetime:
    """When an entry was made; before the first one, when that was."""
    (entry,) = session.get(JOURNAL, [seq or 1])
    if entry is not None:
        return entry.time
    stamp = entry_stamp(session, seq)
    return session.now if stamp is None else stamp.wall


class PastSession:
    """The session of a store that stopped at a position; every write is refused."""

    def __init__(
        self,
        session: Session,
        store: Store,
        space: str,
        as_of: AsOf,
        *,
        experience: Experience | None = None,
        cache: PastCache | None = None,
    ) -> None:
        self._session = session
        self._store = store
        self._space = space
        self._cache = cache
        self._dictionary = store.dictionary
        self.as_of = as_of
        self.lost: dict[str, set[str]] = {}
        """The keys of rows that were there and of which the journal holds no more, by kind."""
        self._derived: dict[str, dict[Any, Any]] = {}
        self._tables: dict[str, RowTable] = {}
        self.uow = UnitOfWork(self, store, space, write=False, experience=experience)
        self.uow.as_of = as_of

    @property
    def now(self) -> datetime:
        """The time of the position."""
        return self.as_of.time

    @cached_property
    def head(self) -> Head | None:
        """The head of the space as it was."""
        head = self._session.head
        if head is None:
            return None
        seq = self.as_of.seq
        return evolve(head, seq=seq, clock=entry_stamp(self._session, seq))

    def get(self, kind: Kind[E], keys: Sequence[Any]) -> list[E | None]:
        """The rows with these keys as they were; raises InvalidValue for what nobody journals."""
        if kind is JOURNAL:
            return self._session.get(kind, [key if key <= self.as_of.seq else 0 for key in keys])
        if kind.derived:
            rows = self._compute_some(kind, keys)
        else:
            self._refuse_unknown(kind)
            rows = self._rows_then(kind, keys)
        return [rows.get(key) for key in keys]

    def select(self, query: Query[E]) -> list[E]:
        """The rows of a query as they were; raises as `get`."""
        if query.kind is JOURNAL:
            return self._session.select(self._until_then(query))
        if query.kind.derived:
            return sort_and_page(query, self._computed_table(query.kind).matching(query))
        changed = self._changed_rows(query.kind)
        # No more than these can be among the rows of today that are left out.
        other = 0 if query.limit is None else len(changed.table_now.matching(query))
        limit = None if query.limit is None else query.limit + other
        same = [
            row
            for row in self._session.select(query._replace(limit=limit))
            if query.kind.key_of(row) not in changed.then
        ]
        return sort_and_page(query, [*same, *changed.table_then.matching(query)])

    def count(self, query: Query[Any]) -> int:
        """How many rows matched a query; raises as `get`."""
        if query.kind is JOURNAL:
            return self._session.count(self._until_then(query))
        if query.kind.derived:
            return len(self._computed_table(query.kind).matching(query))
        changed = self._changed_rows(query.kind)
        more, fewer = changed.table_then.matching(query), changed.table_now.matching(query)
        return self._session.count(query) + len(more) - len(fewer)

    def insert(self, kind: Kind[E], rows: Sequence[E]) -> None:
        """Raise RuntimeError: what was cannot be changed."""
        raise RuntimeError(f"{len(rows)} {kind.name} cannot be written into the past")

    replace = insert

    def delete(self, kind: Kind[Any], keys: Sequence[Any]) -> None:
        """Raise RuntimeError, as `insert` does."""
        raise RuntimeError(f"{len(keys)} {kind.name} cannot be removed from the past")

    def commit(self) -> None:
        """Raise RuntimeError, as `insert` does."""
        raise RuntimeError("the past cannot be changed")

    def _refuse_unknown(self, kind: Kind[Any]) -> None:
        if not kind.journalled:
            what = kind.name.replace("_", " ")
            raise InvalidValue("at", f"{what} are not in the journal: what they were is not known")

    def _until_then(self, query: Query[E]) -> Query[E]:
        """A query of the journal without the entries after the position."""
        bounds = Range() if query.within is None else query.within[1]
        last = self.as_of.seq
        if bounds.high is None or bounds.high > last:
            bounds = bounds._replace(high=last, through=True)
        return query._replace(within=("seq", bounds))

    @cached_property
    def _changes(self) -> PastChanges:
        """What has changed since: the journal after the position, unless that is known already."""
        seq = self.as_of.seq
        if self._cache is None:
            found = ChangeReader(self._session, self._dictionary).read(seq)
        else:
            found = self._cache.find_changes(self._store, self._space, self._session, seq)
        for rows in found.kinds.values():
            self._note_lost(rows)
        return found

    def _changed_rows(self, kind: Kind[Any]) -> PastRows:
        self._refuse_unknown(kind)
        return self._changes.kinds.get(kind.name) or PastRows(kind)

    def _note_lost(self, rows: PastRows) -> None:
        if rows.lost:
            self.lost.setdefault(rows.kind.name, set()).update(rows.lost)

    def _rows_then(self, kind: Kind[Any], keys: Sequence[Any]) -> dict[Any, Any]:
        if not keys:
            return {}
        if "_changes" in vars(self) or len(keys) > FEW:
            changed = self._changed_rows(kind).then
            same = [key for key in keys if key not in changed]
            return {**dict(zip(same, self._session.get(kind, same), strict=True)), **changed}
        reader = ChangeReader(self._session, self._dictionary)
        rows = reader.rows_then(kind, keys, self.as_of.seq)
        self._note_lost(rows)
        return rows.then

    def _compute_some(self, kind: Kind[Any], keys: Sequence[Any]) -> dict[Any, Any]:
        """The computed rows with these keys, of few tasks without computing all others."""
        is_known = "_changes" in vars(self) and kind.name in self._changes.derived
        if kind is STANDINGS or is_known or len(keys) > FEW:
            return self._compute(kind)
        tasks = [task for task in self.uow.get(TASKS, keys) if task is not None]
        return _rows_of(kind, compute_queues(self.uow, tasks))

    def _compute(self, kind: Kind[Any]) -> dict[Any, Any]:
        """All rows of a kind that is computed from others."""
        if kind is STANDINGS:
            if kind.name not in self._derived:
                self._derived[kind.name] = self._compute_standings()
            return self._derived[kind.name]
        known = self._changes.derived
        if kind.name not in known:
            query = find(TASKS, {"status": any_of(UNFINISHED)}, limit=PAGE)
            queues = compute_queues(self.uow, list(select_all(self.uow, query)))
            for each, _ in QUEUES:
                known[each.name] = _rows_of(each, queues)
        return known[kind.name]

    def _compute_standings(self) -> dict[Any, Any]:
        """The standings by key; raises InvalidValue if a part of the ledger is lost."""
        standings = compute_standings(self.uow)
        if lost := self.lost.get(SCORE_EVENTS.name):
            reason = (
                f"standings are not known: {len(lost)} entries of the ledger were removed since"
            )
            raise InvalidValue("at", reason)
        return {each.id: each for each in standings}

    def _computed_table(self, kind: Kind[Any]) -> RowTable:
        if kind.name not in self._tables:
            self._tables[kind.name] = RowTable(list(self._compute(kind).values()))
        return self._tables[kind.name]


def _rows_of(kind: Kind[Any], queues: Sequence[Row]) -> dict[Any, Any]:
    """The queue rows of a kind by task; until when a lease lasted is not known."""
    rows = {each.task_id: each for each in queues if isinstance(each, kind.entity)}
    if kind is OPENINGS:
        return {
            key: row if row.lease_until is None else evolve(row, lease_until=None)
            for key, row in rows.items()
        }
    return rows
