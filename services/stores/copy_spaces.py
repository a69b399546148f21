"""Copy spaces from one store to another, of any engine, every row as it is.

A copy reads its source in one snapshot and never writes there. It fills the target in transactions
of a limited size and can be killed at any time: started again, it goes on where it was, because it
only writes what differs. So a second run copies what has changed since the first. The copy is
finished in the same transaction that found its digest to be equal to the source's.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from attrs import define, evolve, field, frozen

from herdbook.domain.errors import CopyDiffers, InvalidValue, SpaceRefused, StoreDamaged
from herdbook.domain.journal import Head
from herdbook.ports.engine.dictionary import HEADS, JOURNAL
from herdbook.ports.engine.digests import (
    Digest,
    Digester,
    canonical_bytes,
    digest_space,
    is_content,
)
from herdbook.ports.engine.kinds import Kind
from herdbook.ports.engine.long_work import long_work
from herdbook.ports.engine.paging import PAGE, Progress, no_progress
from herdbook.ports.engine.query import Query, find
from herdbook.ports.engine.store import Session, Store
from herdbook.ports.unit_of_work.run import retry
from herdbook.services.stores.transfer import (
    CHANGED_SINCE,
    CopyNote,
    check_target,
    read_copy_note,
    refuse_unfinished,
    select_spaces,
    write_copy_note,
)

TRANSACTION_BYTES = 2**25
"""About how many bytes of rows one transaction writes."""
FIRST_PAGE = 50
"""How many rows of a kind are read first, while their size is not known."""


@frozen
class CopiedSpace:
    """The result of copying one space: its digest is that of both sides.

    `moved_on` says that the source was written to meanwhile; another run copies that too.
    """

    space: str
    rows: int
    written: int
    removed: int
    digest: str
    moved_on: bool


@frozen
class CopyReport:
    """The result of a copy, space by space."""

    spaces: tuple[CopiedSpace, ...]


@long_work()
def copy(
    source: Store,
    target: Store,
    spaces: Sequence[str] | None = None,
    *,
    into: Mapping[str, str] | None = None,
    batch: int = PAGE,
    progress: Progress = no_progress,
) -> CopyReport:
    """Make spaces of the target equal to the source, with journal, secrets and leases.

    `into` names the spaces of the target where they are others than the source's. Raises
    SpaceRefused if the target has a history of its own, and CopyDiffers if the two are not the same
    in the end. Where an engine lets a file be read or written but not both, writers of the source
    wait while a space is read.
    """
    if batch < 1:
        raise InvalidValue("batch", f"must be at least 1, is {batch}")
    wanted = select_spaces(source, target, spaces)
    names = into or {}
    return CopyReport(
        tuple(
            _copy_space(source, target, (each, names.get(each, each)), batch, progress)
            for each in wanted
        )
    )


def _copy_space(
    source: Store, target: Store, names: tuple[str, str], batch: int, progress: Progress
) -> CopiedSpace:
    """Copy one space; `names` are its names in the source and in the target."""
    origin, space = names
    with source.transaction(origin, write=False) as theirs:
        refuse_unfinished(theirs, source, origin)
        total = sum(theirs.count(find(kind)) for kind in source.dictionary)
        head = theirs.head
        if head is None or head.clock is None:
            if total > (head is not None):
                raise StoreDamaged(source.url, f"{origin} has rows but no head")
            return CopiedSpace(space, 0, 0, 0, Digest({}).whole, moved_on=False)
        filling = _SpaceCopy(theirs, source, target, space, head, batch)
        retry(filling.mark_unfinished, target.patience)
        while filling.positions:
            retry(filling.copy_next, target.patience)
            progress(space, filling.done, total)
        digest = retry(filling.finish, target.patience)
    progress(space, total, total)
    with source.transaction(origin, write=False) as later:
        moved_on = later.head != head
    rows = filling.done + 1  # and the head
    return CopiedSpace(space, rows, filling.written, filling.removed, digest.whole, moved_on)


@frozen
class _Position:
    """The position of a copy: a kind, the last key, and whether it clears conflicts or copies."""

    kind: Kind[Any]
    clearing: bool = False
    after: tuple[Any, ...] | None = None
    look: int = FIRST_PAGE

    def query(self, limit: int) -> Query[Any]:
        return find(self.kind, limit=min(limit, self.look))._replace(after=self.after)


def _copy_order(kinds: Iterable[Kind[Any]]) -> list[_Position]:
    """The order of a copy: the journal first, so that nobody can commit to an unfinished copy.

    For kinds with unique values, rows that differ are deleted before others are inserted.
    """
    others = [kind for kind in kinds if kind not in (JOURNAL, HEADS)]
    return [
        _Position(kind, clearing)
        for kind in (JOURNAL, *others)
        for clearing in ([True, False] if kind.uniques else [False])
    ]


@define
class _SpaceCopy:
    """The copy of one space, up to the snapshot of the source.

    Each step can be repeated after a broken connection: its work is counted only when it has been
    committed.
    """

    theirs: Session
    source: Store
    target: Store
    space: str
    head: Head
    batch: int
    positions: list[_Position] = field(init=False)
    note: CopyNote | None = None
    done: int = 0
    written: int = 0
    removed: int = 0
    digesting: Digester = field(factory=Digester)

    def __attrs_post_init__(self) -> None:
        self.positions = _copy_order(self.target.dictionary)
        text = canonical_bytes(HEADS, self.head)
        self.digesting.add(HEADS, text)

    def mark_unfinished(self) -> None:
        """Mark the space as an unfinished copy."""
        with self.target.transaction(self.space, write=True) as session:
            note = check_target(session, self.target, self.space, self.theirs, self.source)
            write_copy_note(session, note)
            session.commit()
        self.note = note

    def copy_next(self) -> None:
        """Copy the next rows, in a transaction of limited size."""
        places, steps = list(self.positions), []
        rows = size = 0
        with self.target.transaction(self.space, write=True) as session:
            self._check_untouched(session)
            while places and rows < self.batch and size < TRANSACTION_BYTES:
                step = _copy_range(self.theirs, session, places[0], self.batch - rows)
                steps.append(step)
                places[:1] = [step.next] if step.next else []
                rows, size = rows + step.rows, size + step.size
            session.commit()
        self.positions = places
        for step in steps:
            self.written += step.written
            self.removed += step.removed
            self.done += len(step.texts)
            for text in step.texts:
                self.digesting.add(step.kind, text)

    def finish(self) -> Digest:
        """Write the head and mark the copy as finished; raises CopyDiffers for unequal digests."""
        wanted = self.digesting.result()
        with self.target.transaction(self.space, write=True) as session:
            self._check_untouched(session)
            session.replace(HEADS, [self.head])
            write_copy_note(
                session, evolve(self._note, unfinished=False, clock=str(self.head.clock))
            )
            differing = wanted.differing_kinds(digest_space(session, self.target.dictionary))
            if differing:
                raise CopyDiffers(self.target.url, self.space, differing)
            session.commit()
        return wanted

    @property
    def _note(self) -> CopyNote:
        if self.note is None:
            raise AssertionError("a copy begins before it goes on")
        return self.note

    def _check_untouched(self, session: Session) -> None:
        """Raise SpaceRefused if the space was written to since the copy began."""
        head, note = session.head, read_copy_note(session)
        ours = note == self._note and head is not None and str(head.clock) == self._note.clock
        # If the answer to our last commit was lost, the head is already the source's.
        if not ours and head != self.head:
            raise SpaceRefused(self.target.url, self.space, CHANGED_SINCE)


@frozen
class _CopiedRange:
    """What was done for a range of keys of a kind, and the position to go on from."""

    kind: Kind[Any]
    next: _Position | None
    rows: int
    size: int
    written: int
    removed: int
    texts: list[bytes]


def _copy_range(theirs: Session, ours: Session, place: _Position, limit: int) -> _CopiedRange:
    """Make a range of keys equal on both sides, or, when clearing, delete the rows that differ."""
    kind, query = place.kind, place.query(limit)
    wanted, found = theirs.select(query), ours.select(query)
    ends = [kind.key_of(page[-1]) for page in (wanted, found) if len(page) == query.limit]
    end = min(ends, default=None)
    wanted_texts, found_texts = (
        {
            kind.key_of(row): canonical_bytes(kind, row)
            for row in page
            if is_content(kind, row) and (end is None or kind.key_of(row) <= end)
        }
        for page in (wanted, found)
    )
    rows = {kind.key_of(row): row for row in wanted}
    gone = [key for key in found_texts if key not in wanted_texts]
    changed = [key for key, text in found_texts.items() if wanted_texts.get(key, text) != text]
    new = [key for key in wanted_texts if key not in found_texts]
    if place.clearing:
        ours.delete(kind, gone + changed)
        new, changed = [], []
    else:
        ours.delete(kind, gone)
        ours.replace(kind, [rows[key] for key in changed])
        ours.insert(kind, [rows[key] for key in new])
    size = sum(map(len, wanted_texts.values())) + sum(map(len, found_texts.values()))
    size += sum(
        len(vars(row)[name] or b"") for row in (*wanted, *found) for name in kind.bytes_fields
    )
    count = max(len(wanted_texts), len(found_texts), 1)
    following = None
    if end is not None and (found or not place.clearing):
        look = max(1, min(TRANSACTION_BYTES * count // (size + 1), PAGE))
        following = evolve(place, after=(end,), look=look)
    return _CopiedRange(
        kind,
        following,
        rows=count,
        size=size,
        written=len(new) + len(changed),
        removed=len(gone),
        texts=[] if place.clearing else list(wanted_texts.values()),
    )
