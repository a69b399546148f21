"""One transaction on one space, with everything a space promises kept in it.

Written once, above the store: versions, references, uniques, cascades, cycles, derived rows and
the journal mean the same on every engine, because the store only ever sees plain rows.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, TypeVar

from herdbook.domain.clock import Stamp
from herdbook.domain.entity import evolve
from herdbook.domain.errors import InvalidValue, NotFound, StaleWrite, StoreTooNew
from herdbook.domain.grading import Experience
from herdbook.domain.journal import NOBODY, Actor, join_notes
from herdbook.domain.location.areas import area_of
from herdbook.ports.engine.codec import revive
from herdbook.ports.engine.dictionary import HEADS, JOURNAL
from herdbook.ports.engine.kinds import Dictionary, Kind
from herdbook.ports.engine.query import Query
from herdbook.ports.engine.store import Session, Store
from herdbook.ports.repositories.all import Repositories
from herdbook.ports.unit_of_work.changes import Change
from herdbook.ports.world.ids import Ids

E = TypeVar("E")


class UnitOfWork(Repositories):
    """A transaction as use cases see it: named repositories over a session.

    Nothing lasts unless `commit` is called, and nothing can be done behind it. The write half may
    only be used by the one thread and in the one process that began it.
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
        self.node = store.uuid
        self.changes: list[Change] = []
        self._derived = 0
        self._has_put = False
        self._ids = ids or store.ids
        self._write = write
        if write:
            from herdbook.ports.unit_of_work import promises  # noqa: PLC0415 - readers need not wait for it

            self._promises = promises
            self.reactions = promises.Reactions(self)
        self._over = False
        self.left_at: Stamp | None = None
        """The clock of the space behind this transaction, once that has been committed."""
        self._tx = self._ids()
        self._appended = 0
        self._known: dict[str, dict[Any, Any]] = {}

    @property
    def experience(self) -> Experience:
        """By which rules standings are counted."""
        return self._experience or Experience()

    @property
    def now(self) -> datetime:
        """The time of this transaction."""
        return self.session.now

    @property
    def over(self) -> bool:
        """Whether the store was asked to make it last, so that it may have happened."""
        return self._over

    @property
    def has_changes(self) -> bool:
        """Whether anything was written in it, be it journalled or derived."""
        return bool(self.changes) or self._has_put

    @property
    def tx(self) -> str:
        """The name the journal will know this transaction by."""
        return f"tx_{self._tx}"

    def get(self, kind: Kind[E], keys: Sequence[Any]) -> list[E | None]:
        """Rows by key, None where there is none; InvalidValue for what no key can be.

        A row that this transaction has seen is not asked for again: nobody else writes meanwhile.
        """
        if kind.derived:
            self._bring_up_to_date()
        known = self._known.setdefault(kind.name, {})
        missing = [key for key in dict.fromkeys(keys) if key not in known]
        if missing:
            check = kind.columns[kind.key].checked
            for key in missing:
                check(key)
            found = self.session.get(kind, missing)
            if kind.append_only:
                return self._merged(keys, known, dict(zip(missing, found, strict=True)))
            known.update(zip(missing, found, strict=True))
        return [known[key] for key in keys]

    @staticmethod
    def _merged(keys: Sequence[Any], known: dict[Any, Any], found: dict[Any, Any]) -> list[Any]:
        return [known[key] if key in known else found[key] for key in keys]

    def select(self, query: Query[E]) -> list[E]:
        """The answer to a query."""
        if query.kind.derived:
            self._bring_up_to_date()
        rows = self.session.select(query)
        if not query.kind.append_only:
            known = self._known.setdefault(query.kind.name, {})
            known.update((query.kind.key_of(row), row) for row in rows)
        return rows

    def count(self, query: Query[Any]) -> int:
        """How many rows a query admits."""
        if query.kind.derived:
            self._bring_up_to_date()
        return self.session.count(query)

    def add(self, kind: Kind[E], rows: Sequence[E]) -> list[E]:
        """Add new rows, all or none; they come back with their ids, times and versions."""
        self._check_area(kind)
        stamped = [self._stamped(kind, row) for row in rows]
        nothing = [None] * len(stamped)
        if kind.references:
            self._promises.check_references(self, self.dictionary, kind, stamped, nothing)
        if kind.uniques:
            self._promises.check_uniques(self, kind, stamped, nothing)
        if kind in self._promises.KINDS:
            self._promises.refuse_cycles(self, [(None, row) for row in stamped])
        self.session.insert(kind, stamped)
        self._note(kind, ((None, row) for row in stamped))
        return stamped

    def append(self, kind: Kind[E], rows: Sequence[E]) -> list[E]:
        """Add new rows whose keys are known to be free, of a kind that refers to nothing.

        As `add`, but an engine may hold them back until somebody asks it something.
        """
        # Asking whether it is one of `Appends` would take longer than adding the row.
        append = getattr(self.session, "append", None)
        if kind.references or kind.uniques or append is None:
            return self.add(kind, rows)
        self._check_area(kind)
        stamped = [self._stamped(kind, row) for row in rows]
        append(kind, stamped)
        self._note(kind, ((None, row) for row in stamped))
        return stamped

    def adopt(self, rows: Mapping[Kind[Any], Sequence[Any]]) -> None:
        """Add rows of several kinds, all or none, that keep their ids, times and versions.

        They may refer to one another, whatever the order of their kinds.
        """
        for kind in rows:
            self._check_area(kind)
        self._promises.check_adopted(self, self.dictionary, rows)
        for kind, each in rows.items():
            self.session.insert(kind, each)
            self._note(kind, ((None, row) for row in each))

    def save(self, kind: Kind[E], rows: Sequence[E]) -> list[E]:
        """Save changed rows, all or none; StaleWrite if one was saved since it was read."""
        self._check_area(kind)
        if kind.append_only or kind.derived:
            raise InvalidValue(kind.title, "is written once and not changed")
        before = self.existing(kind, [kind.key_of(row) for row in rows])
        saved: set[Any] = set()
        for row, old in zip(rows, before, strict=True):
            key = kind.key_of(row)
            held, current = vars(row)["version"], vars(old)["version"] + (key in saved)
            if held != current:
                raise StaleWrite(kind.title, str(key), held, current)
            saved.add(key)
        after = [self._resaved(kind, *pair) for pair in zip(rows, before, strict=True)]
        self._promises.check_references(self, self.dictionary, kind, after, before)
        self._promises.check_uniques(self, kind, after, before)
        if kind in self._promises.KINDS:
            self._promises.refuse_cycles(self, list(zip(before, after, strict=True)))
        self.session.replace(kind, after)
        self._note(kind, zip(before, after, strict=True))
        return after

    def remove(self, kind: Kind[Any], keys: Sequence[Any]) -> None:
        """Remove rows and all that goes with them; NotFound if one is not there."""
        self._check_area(kind)
        rows = self.existing(kind, list(dict.fromkeys(keys)))
        removed, emptied = self._promises.to_remove(self, self.dictionary, kind, rows)
        for referrer, after in emptied.items():
            before = self.existing(referrer, list(after))
            resaved = [
                self._resaved(referrer, row, old)
                for row, old in zip(after.values(), before, strict=True)
            ]
            self.session.replace(referrer, resaved)
            self._note(referrer, zip(before, resaved, strict=True))
        for each, gone in removed.items():
            self.session.delete(each, list(gone))
            self._note(each, ((row, None) for row in gone.values()))

    def put_derived(self, kind: Kind[E], rows: Sequence[E], gone: Sequence[Any] = ()) -> None:
        """Write rows that follow from others: not journalled, not versioned."""
        self._check_open()
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

    def existing(self, kind: Kind[E], keys: Sequence[Any]) -> list[E]:
        """Rows by key; NotFound names the first that is missing."""
        found = self.get(kind, keys)
        rows: list[E] = []
        for key, row in zip(keys, found, strict=True):
            if row is None:
                raise NotFound(kind.title, str(key))
            rows.append(row)
        return rows

    def commit(self) -> None:
        """Bring derived rows up to date, write the journal and make it all last."""
        self._check_open()
        self._bring_up_to_date()
        entries, head = self._promises.write_down(self)
        if entries:
            self.session.insert(JOURNAL, entries)
        if self.session.head is None:
            self.session.insert(HEADS, [head])
        else:
            self.session.replace(HEADS, [head])
        self._over = True
        self.session.commit()
        self.left_at = head.clock

    def act_as(self, agent: str) -> None:
        """Let the journal tell that this agent did it."""
        self.actor = evolve(self.actor, agent=agent)

    def add_note(self, note: str) -> None:
        """Let the journal tell something about who did it."""
        self.actor = evolve(self.actor, note=join_notes(self.actor.note, note))

    def new_id(self, kind: Kind[Any]) -> str:
        """An id for a row of this kind.

        What is appended in one transaction shares its time, so its ids count up: they keep the
        order in which it was said.
        """
        if kind.append_only:
            self._appended += 1
            return f"{kind.prefix}_{self._tx}{self._appended:06x}"
        return f"{kind.prefix}_{self._ids()}"

    def _stamped(self, kind: Kind[E], row: E) -> E:
        values = dict(vars(row))
        columns = kind.columns
        if kind.prefix and not values[kind.key]:
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
        return revive(kind, values)

    def _resaved(self, kind: Kind[E], row: E, old: E) -> E:
        values = dict(vars(row))
        was = vars(old)
        if "version" in was:
            values["created_at"] = was["created_at"]
            values["updated_at"] = self.now
            values["version"] = was["version"] + 1
        return revive(kind, values)

    def _note(self, kind: Kind[Any], pairs: Iterable[tuple[Any, Any]]) -> None:
        known = self._known.setdefault(kind.name, {})
        for before, after in pairs:
            key = kind.key_of(before if after is None else after)
            self.changes.append(Change(kind, key, before, after))
            known[key] = after

    def _bring_up_to_date(self) -> None:
        """Run the reactions, and let derived rows follow what was changed since they last did."""
        if self._write:
            self.reactions.run()
        fresh = self.changes[self._derived :]
        if fresh:
            # First, because deriving asks for derived rows itself.
            self._derived = len(self.changes)
            self._promises.derive(fresh, self)

    def _check_open(self) -> None:
        """Some engines would take a change behind the commit, and no journal would tell of it."""
        if self._over:
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
    """Begin a unit of work; it is undone unless it was committed.

    StoreTooNew if the space has been upgraded beyond what this program may write: a process that
    was running during an upgrade learns of it here.
    """
    with store.transaction(space, write=write) as session:
        head = session.head if write else None
        if head is not None and head.oldest_writer > store.dictionary.version:
            raise StoreTooNew(store.url, head.schema_version, store.dictionary.version)
        yield UnitOfWork(
            session,
            store,
            space,
            ids=ids,
            write=write,
            actor=actor,
            operation_id=operation_id,
            experience=experience,
        )
