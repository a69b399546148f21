"""One transaction on one space, with every rule of the space enforced.

Written once, above the store: versions, references, uniques, cascades, cycles, projections and the
journal mean the same on every engine, because the store only ever sees plain rows.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

from herdbook.domain.clock import Stamp, merge, tick
from herdbook.domain.entity import evolve
from herdbook.domain.errors import InvalidValue, NotFound, StaleWrite, StoreTooNew
from herdbook.domain.grading import Experience
from herdbook.domain.journal import (
    NOBODY,
    Actor,
    Cause,
    JournalEntry,
    Provenance,
    join_notes,
)
from herdbook.domain.location.areas import area_of
from herdbook.ports.engine.codec import construct_unchecked
from herdbook.ports.engine.derived_ids import derive_id, with_derived_id
from herdbook.ports.engine.dictionary import ROWS_VERSION
from herdbook.ports.engine.kinds import Dictionary, Kind
from herdbook.ports.engine.query import Query
from herdbook.ports.engine.store import Session, Store
from herdbook.ports.repositories.all import Repositories
from herdbook.ports.unit_of_work.changes import RowChange, RowKey
from herdbook.ports.world.system import Ids

if TYPE_CHECKING:
    from herdbook.domain.rewind import AsOf

E = TypeVar("E")
_NO_ROOTS: Mapping[RowKey, RowKey] = {}


class UnitOfWork(Repositories):
    """A transaction as use cases see it: named repositories over a session.

    Nothing is stored unless `commit` is called, and no changes are accepted after it. The write
    half may only be used by the one thread and in the one process that began it. Its methods import
    the modules that only writers need, so that a process that only reads starts without them.
    """

    def __init__(
        self,
        session: Session,
        store: Store,
        space: str,
        *,
        ids: Ids | None = None,
        write: bool = True,
        actor: Actor = NOBODY,
        operation_id: str | None = None,
        experience: Experience | None = None,
    ) -> None:
        self.session = session
        self.space = space
        self.area = area_of(space)
        self.dictionary: Dictionary = store.dictionary
        self.actor = actor
        self.operation_id = operation_id
        self._experience = experience
        self.store_uuid = store.uuid
        self._store = store
        self.cause: Cause | None = None
        """Why the following changes are made, if not because somebody asked for each of them."""
        self._provenance: Provenance | None = None
        self._merged_clock: Stamp | None = None
        self.head_changes: dict[str, Any] = {}
        """Fields of the space's head that this transaction sets, besides its position."""
        self.changes: list[RowChange] = []
        self._derived = 0
        self._has_put = False
        self._ids = ids or store.ids
        self._write = write
        self.as_of: AsOf | None = None
        """The earlier position that this one reads; None for the present."""
        if write:
            from herdbook.ports.unit_of_work.reactions import Reactions  # noqa: PLC0415 - readers need none

            self.reactions = Reactions(self)
        self._commit_started = False
        self.clock_after_commit: Stamp | None = None
        """The clock of the space after this transaction, once that has been committed."""
        self.seq_after_commit: int | None = None
        """The number of the last entry of the journal, likewise."""
        self._entries: list[JournalEntry] = []
        self._tx = self._ids()
        self._appended = 0
        self._known: dict[str, dict[Any, Any]] = {}

    @property
    def experience(self) -> Experience:
        """The rules by which standings are computed."""
        return self._experience or Experience()

    @property
    def now(self) -> datetime:
        """The time of this transaction."""
        return self.session.now

    @property
    def node(self) -> str:
        """The node that this transaction's stamps are from."""
        return self._store.node

    @property
    def clock(self) -> Stamp | None:
        """The stamp that those of this transaction come after."""
        if self._merged_clock is not None:
            return self._merged_clock
        head = self.session.head
        return None if head is None else head.clock

    @property
    def stamp(self) -> Stamp:
        """The first stamp of this transaction, which no other transaction has."""
        return tick(self.clock, self.now, self.node)

    @property
    def commit_started(self) -> bool:
        """Whether the store was asked to commit, so that the commit may have happened."""
        return self._commit_started

    @property
    def has_changes(self) -> bool:
        """Whether anything was written in it, be it journalled or derived."""
        return bool(self.changes) or self._has_put

    @property
    def tx(self) -> str:
        """The id of this transaction in the journal."""
        return f"tx_{self._tx}"

    def get(self, kind: Kind[E], keys: Sequence[Any]) -> list[E | None]:
        """Rows by key, None where there is none; raises InvalidValue for what cannot be a key.

        A row that this transaction has seen is not read again: nobody else writes meanwhile.
        """
        if not keys:
            return []
        if kind.derived:
            self._update_projections()
        known = self._known.setdefault(kind.name, {})
        missing = [key for key in dict.fromkeys(keys) if key not in known]
        if missing:
            check = kind.columns[kind.key].check
            for key in missing:
                check(key)
            found = self.session.get(kind, missing)
            if kind.append_only:
                return self._merge_known(keys, known, dict(zip(missing, found, strict=True)))
            known.update(zip(missing, found, strict=True))
        return [known[key] for key in keys]

    @staticmethod
    def _merge_known(
        keys: Sequence[Any], known: dict[Any, Any], found: dict[Any, Any]
    ) -> list[Any]:
        return [known[key] if key in known else found[key] for key in keys]

    def select(self, query: Query[E]) -> list[E]:
        """The rows of a query."""
        if query.kind.derived:
            self._update_projections()
        rows = self.session.select(query)
        if not query.kind.append_only:
            known = self._known.setdefault(query.kind.name, {})
            known.update((query.kind.key_of(row), row) for row in rows)
        return rows

    def count(self, query: Query[Any]) -> int:
        """How many rows match a query."""
        if query.kind.derived:
            self._update_projections()
        return self.session.count(query)

    def add(self, kind: Kind[E], rows: Sequence[E]) -> list[E]:
        """Add new rows, all or none; return them with their ids, times and versions.

        Raises UnknownReference, AlreadyExists or CycleRefused if a rule of the space refuses them.
        """
        if not rows:
            return []
        from herdbook.ports.unit_of_work import cycles, integrity  # noqa: PLC0415 - readers need none

        self._check_area(kind)
        stamped = [self._stamp_new(kind, row) for row in rows]
        nothing = [None] * len(stamped)
        if kind.references:
            integrity.check_references(self, self.dictionary, kind, stamped, nothing)
        if kind.uniques:
            integrity.check_uniques(self, kind, stamped, nothing)
        if kind in cycles.EDGE_KINDS:
            cycles.refuse_cycles(self, [(None, row) for row in stamped])
        cycles.refuse_own_ancestors(self, kind, [(None, row) for row in stamped])
        self.session.insert(kind, stamped)
        self._record_changes(kind, ((None, row) for row in stamped))
        return stamped

    def append(self, kind: Kind[E], rows: Sequence[E]) -> list[E]:
        """Add new rows whose keys are known to be free, of a kind without references and uniques.

        As `add`, but an engine may hold them back until the next query.
        """
        # An isinstance check for `SupportsAppend` would take longer than adding the row.
        append = getattr(self.session, "append", None)
        if kind.references or kind.uniques or append is None:
            return self.add(kind, rows)
        self._check_area(kind)
        stamped = [self._stamp_new(kind, row) for row in rows]
        append(kind, stamped)
        self._record_changes(kind, ((None, row) for row in stamped))
        return stamped

    def insert_verbatim(self, rows: Mapping[Kind[Any], Sequence[Any]]) -> None:
        """Add rows of several kinds, all or none, that keep their ids, times and versions.

        They may refer to one another, whatever the order of their kinds. Raises what
        `check_verbatim_rows` raises.
        """
        from herdbook.ports.unit_of_work import verbatim_insert  # noqa: PLC0415 - readers need none

        for kind in rows:
            self._check_area(kind)
        rows = {kind: [with_derived_id(kind, row) for row in each] for kind, each in rows.items()}
        verbatim_insert.check_verbatim_rows(self, self.dictionary, rows)
        for kind, each in rows.items():
            self.session.insert(kind, each)
            self._record_changes(kind, ((None, row) for row in each))

    def replace_verbatim(self, kind: Kind[E], rows: Sequence[E], others: Sequence[E]) -> None:
        """Put other rows in the place of these, as they are; neither is checked.

        For a rewrite of rows that keep their meaning.
        """
        self._check_area(kind)
        self.session.delete(kind, [kind.key_of(row) for row in rows])
        self._record_changes(kind, ((row, None) for row in rows))
        self.session.insert(kind, others)
        self._record_changes(kind, ((None, row) for row in others))

    def save(self, kind: Kind[E], rows: Sequence[E]) -> list[E]:
        """Save changed rows, all or none; raises StaleWrite if one was saved since it was read.

        Raises InvalidValue for a kind whose rows are written once, and what `add` raises.
        """
        if not rows:
            return []
        from herdbook.ports.unit_of_work import cycles, integrity  # noqa: PLC0415 - readers need none

        self._check_area(kind)
        if kind.append_only or kind.derived:
            raise InvalidValue(kind.title, "is written once and not changed")
        before = self.get_existing(kind, [kind.key_of(row) for row in rows])
        saved: set[Any] = set()
        for row, old in zip(rows, before, strict=True):
            key = kind.key_of(row)
            held, current = vars(row)["version"], vars(old)["version"] + (key in saved)
            if held != current:
                raise StaleWrite(kind.title, str(key), held, current)
            saved.add(key)
        after = [self._stamp_saved(kind, *pair) for pair in zip(rows, before, strict=True)]
        integrity.check_references(self, self.dictionary, kind, after, before)
        integrity.check_uniques(self, kind, after, before)
        if kind in cycles.EDGE_KINDS:
            cycles.refuse_cycles(self, list(zip(before, after, strict=True)))
        cycles.refuse_own_ancestors(self, kind, list(zip(before, after, strict=True)))
        integrity.refuse_other_identity(kind, after, before)
        self.session.replace(kind, after)
        self._record_changes(kind, zip(before, after, strict=True))
        return after

    def remove(self, kind: Kind[Any], keys: Sequence[Any]) -> None:
        """Remove rows and everything that depends on them; raises NotFound if one is missing."""
        if not keys:
            return
        from herdbook.ports.unit_of_work import integrity  # noqa: PLC0415 - readers need none

        self._check_area(kind)
        rows = self.get_existing(kind, list(dict.fromkeys(keys)))
        removal = integrity.plan_removal(self, self.dictionary, kind, rows)
        for referrer, after in removal.emptied.items():
            before = self.get_existing(referrer, list(after))
            resaved = [
                self._stamp_saved(referrer, row, old)
                for row, old in zip(after.values(), before, strict=True)
            ]
            self.session.replace(referrer, resaved)
            pairs = zip(before, resaved, strict=True)
            self._record_changes(referrer, pairs, Cause.SET_NULL, removal.roots)
        for each, gone in removal.removed.items():
            self.session.delete(each, list(gone))
            ended = ((row, None) for row in gone.values())
            self._record_changes(each, ended, Cause.CASCADE, removal.roots)

    def put_derived(self, kind: Kind[E], rows: Sequence[E], gone: Sequence[Any] = ()) -> None:
        """Write rows of a projection: not journalled, not versioned."""
        self._check_open()
        if not rows and not gone:
            return
        keys = [kind.key_of(row) for row in rows]
        current = self.get(kind, keys)
        pairs = list(zip(rows, current, strict=True))
        new = [row for row, old in pairs if old is None]
        changed = [row for row, old in pairs if old is not None and old != row]
        self._has_put = self._has_put or bool(gone or new or changed)
        if gone:
            self.session.delete(kind, gone)
        if new:
            self.session.insert(kind, new)
        if changed:
            self.session.replace(kind, changed)
        known = self._known.setdefault(kind.name, {})
        known.update(zip(keys, rows, strict=True))
        known.update(dict.fromkeys(gone))

    def get_existing(self, kind: Kind[E], keys: Sequence[Any]) -> list[E]:
        """Rows by key; raises NotFound for the first that is missing."""
        found = self.get(kind, keys)
        rows: list[E] = []
        for key, row in zip(keys, found, strict=True):
            if row is None:
                raise NotFound(kind.title, str(key))
            rows.append(row)
        return rows

    def commit(self) -> None:
        """Update the projections, write the journal and commit."""
        from herdbook.ports.unit_of_work import journal_writer  # noqa: PLC0415 - readers need none

        self._check_open()
        self._update_projections()
        head, self._entries = journal_writer.append_journal(self)
        self._commit_started = True
        self.session.commit()
        self.clock_after_commit, self.seq_after_commit = head.clock, head.seq

    def wake_listeners(self) -> None:
        """Wake who waits for changes of the space, if it was committed.

        To be called when the transaction has ended and holds no lock.
        """
        if self.seq_after_commit is not None:
            self._store.wakeups.ring(self.space, self.seq_after_commit, self._entries)

    def receive(self, provenance: Provenance | None) -> None:
        """Record the following changes as made by another replica; None ends that.

        This is the one place where a stamp of another node is accepted. The clock of the space
        moves past it. Raises InvalidValue, before anything is changed, if it is more than a minute
        ahead of this machine's clock.
        """
        if provenance is not None:
            self._merged_clock = merge(self.clock, provenance.origin, self.now, self.node)
        self._provenance = provenance

    def act_as(self, agent: str) -> None:
        """Record this agent as the actor in the journal."""
        self.actor = evolve(self.actor, agent=agent)

    def add_note(self, note: str) -> None:
        """Let the journal tell something about who did it."""
        self.actor = evolve(self.actor, note=join_notes(self.actor.note, note))

    def new_id(self, kind: Kind[Any]) -> str:
        """A new id for a row of this kind.

        Rows appended in one transaction share its time, so their ids count up: sorting by id keeps
        the order in which they were added.
        """
        if kind.append_only:
            self._appended += 1
            return f"{kind.prefix}_{self._tx}{self._appended:06x}"
        return f"{kind.prefix}_{self._ids()}"

    def _stamp_new(self, kind: Kind[E], row: E) -> E:
        values = dict(vars(row))
        columns = kind.columns
        if kind.identity:
            values[kind.key] = derive_id(kind, values)
        elif kind.prefix and not values[kind.key]:
            values[kind.key] = self.new_id(kind)
        elif not values[kind.key]:
            raise InvalidValue(kind.key, f"a {kind.title} needs one")
        if "created_at" in columns and columns["created_at"].has_default:
            values["created_at"] = self.now
        if "version" in columns:
            values["updated_at"] = self.now
            values["version"] = 1
        if "worktree_id" in columns and values["worktree_id"] is None:
            values["worktree_id"] = self.actor.worktree
        return construct_unchecked(kind, values)

    def _stamp_saved(self, kind: Kind[E], row: E, old: E) -> E:
        values = dict(vars(row))
        was = vars(old)
        if "version" in was:
            values["created_at"] = was["created_at"]
            values["updated_at"] = self.now
            values["version"] = was["version"] + 1
        return construct_unchecked(kind, values)

    def _record_changes(
        self,
        kind: Kind[Any],
        pairs: Iterable[tuple[Any, Any]],
        cause: Cause | None = None,
        roots: Mapping[RowKey, RowKey] = _NO_ROOTS,
    ) -> None:
        """Record changes; `cause` is that of the rows that have a root."""
        known = self._known.setdefault(kind.name, {})
        for before, after in pairs:
            key = kind.key_of(before if after is None else after)
            root = roots.get((kind.name, key)) if roots else None
            why = self.cause if root is None else cause
            self.changes.append(RowChange(kind, key, before, after, why, root, self._provenance))
            known[key] = after

    def _update_projections(self) -> None:
        """Run the reactions and update the projections for what was changed since the last time."""
        if self._write:
            self.reactions.run()
        fresh = self.changes[self._derived :]
        if fresh:
            from herdbook.ports.unit_of_work import projections  # noqa: PLC0415 - readers need none

            # Set first, because the update reads projections itself.
            self._derived = len(self.changes)
            projections.update_projections(fresh, self)

    def _check_open(self) -> None:
        """Raise RuntimeError after the commit, or in a unit of work for reading.

        Some engines would accept a change after the commit, and no journal entry would record it.
        """
        if self._commit_started:
            raise RuntimeError("this unit of work is over; begin another one")
        if not self._write:
            raise RuntimeError("this unit of work was begun for reading only")

    def _check_area(self, kind: Kind[Any]) -> None:
        self._check_open()
        if kind.area not in (None, self.area):
            raise InvalidValue("space", f"{kind.name} are not kept in {self.space}")


@contextmanager
def unit_of_work(
    store: Store,
    space: str,
    *,
    ids: Ids | None = None,
    write: bool = True,
    actor: Actor = NOBODY,
    operation_id: str | None = None,
    experience: Experience | None = None,
) -> Iterator[UnitOfWork]:
    """Begin a unit of work; it is undone unless it is committed, and then wakes who waits for it.

    If the rows of the space are of an older version, they are rewritten first, in a transaction of
    their own. Raises StoreTooNew if the space has been upgraded beyond what this program may write:
    a process that was running during an upgrade learns of it here.
    """
    uow: UnitOfWork | None = None
    try:
        with store.transaction(space, write=write) as session:
            head = session.head if write else None
            if head is not None and head.oldest_writer > store.dictionary.version:
                raise StoreTooNew(store.url, head.schema_version, store.dictionary.version)
            uow = UnitOfWork(
                session,
                store,
                space,
                ids=ids,
                write=write,
                actor=actor,
                operation_id=operation_id,
                experience=experience,
            )
            if head is None or (head.rows_version or 0) >= ROWS_VERSION:
                yield uow
                return
            from herdbook.ports.unit_of_work.rewrites import rewrite_rows  # noqa: PLC0415 - once in a space's life

            uow.operation_id = None
            rewrite_rows(uow)
    finally:
        if uow is not None:
            uow.wake_listeners()
    with unit_of_work(
        store, space, ids=ids, actor=actor, operation_id=operation_id, experience=experience
    ) as uow:
        yield uow
