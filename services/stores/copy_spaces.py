"""Copy spaces from one store to another, of whatever engine, every row as it is.

A copy reads its source at one moment and never writes there. It fills the target in transactions
of a limited size and can be killed at any time: started again, it goes on where it was, because it
only writes what differs. So a second run brings over what has changed since the first. The copy is
finished in the one transaction in which its digest was found to be equal to the source's.
"""

from collections.abc import Iterable, Sequence
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
    WORKED_IN,
    Note,
    accept,
    note_of,
    put_note,
    refuse_unfinished,
    spaces_of,
)

ROOM = 2**25
"""How many bytes of rows a transaction carries, more or less."""
FIRST_LOOK = 50
"""How many rows of a kind are read before it is known how large they are."""


@frozen
class CopiedSpace:
    """What came of copying one space: its digest is that of both sides.

    `moved_on` says that the source was written to meanwhile; another copy brings that over too.
    """

    space: str
    rows: int
    written: int
    removed: int
    digest: str
    moved_on: bool


@frozen
class CopyReport:
    """What came of a copy, space by space."""

    spaces: tuple[CopiedSpace, ...]


@long_work()
def copy(
    source: Store,
    target: Store,
    spaces: Sequence[str] | None = None,
    *,
    batch: int = PAGE,
    progress: Progress = no_progress,
) -> CopyReport:
    """Make spaces of the target what they are in the source, journal, secrets and leases included.

    SpaceRefused where the target has a history of its own; CopyDiffers if the two are not the same
    in the end. Where an engine lets a file be read or written but not both, writers of the source
    wait while a space is read.
    """
    if batch < 1:
        raise InvalidValue("batch", f"must be at least 1, is {batch}")
    wanted = spaces_of(source, target, spaces)
    return CopyReport(tuple(_copy_space(source, target, each, batch, progress) for each in wanted))


def _copy_space(
    source: Store, target: Store, space: str, batch: int, progress: Progress
) -> CopiedSpace:
    with source.transaction(space, write=False) as theirs:
        refuse_unfinished(theirs, source, space)
        total = sum(theirs.count(find(kind)) for kind in source.dictionary)
        head = theirs.head
        if head is None or head.clock is None:
            if total > (head is not None):
                raise StoreDamaged(source.url, f"{space} has rows but no head")
            return CopiedSpace(space, 0, 0, 0, Digest({}).whole, moved_on=False)
        filling = _Filling(theirs, source, target, space, head, batch)
        retry(filling.begin, target.patience)
        while filling.places:
            retry(filling.go_on, target.patience)
            progress(space, filling.done, total)
        digest = retry(filling.finish, target.patience)
    progress(space, total, total)
    with source.transaction(space, write=False) as later:
        moved_on = later.head != head
    rows = filling.done + 1  # and the head
    return CopiedSpace(space, rows, filling.written, filling.removed, digest.whole, moved_on)


@frozen
class _Place:
    """Where a copy is: at a kind, behind a key, clearing the way or filling."""

    kind: Kind[Any]
    clearing: bool = False
    after: tuple[Any, ...] | None = None
    look: int = FIRST_LOOK

    def query(self, limit: int) -> Query[Any]:
        return find(self.kind, limit=min(limit, self.look))._replace(after=self.after)


def _places(kinds: Iterable[Kind[Any]]) -> list[_Place]:
    """The way of a copy: the journal first, so that nobody can commit to what is unfinished.

    Where values are unique, rows that differ make room before others come in.
    """
    others = [kind for kind in kinds if kind not in (JOURNAL, HEADS)]
    return [
        _Place(kind, clearing)
        for kind in (JOURNAL, *others)
        for clearing in ([True, False] if kind.uniques else [False])
    ]


@define
class _Filling:
    """One space of the target on its way to what the source was at one moment.

    Each step can be done again when the connection broke in it: what it did is counted when it
    has been committed.
    """

    theirs: Session
    source: Store
    target: Store
    space: str
    head: Head
    batch: int
    places: list[_Place] = field(init=False)
    note: Note | None = None
    done: int = 0
    written: int = 0
    removed: int = 0
    digesting: Digester = field(factory=Digester)

    def __attrs_post_init__(self) -> None:
        self.places = _places(self.target.dictionary)
        text = canonical_bytes(HEADS, self.head)
        self.digesting.add(HEADS, text)

    def begin(self) -> None:
        """Mark the space as being filled."""
        with self.target.transaction(self.space, write=True) as session:
            note = accept(session, self.target, self.space, self.theirs, self.source)
            put_note(session, note)
            session.commit()
        self.note = note

    def go_on(self) -> None:
        """Bring over the next rows, in a transaction of limited size."""
        places, steps = list(self.places), []
        rows = size = 0
        with self.target.transaction(self.space, write=True) as session:
            self._check_ours(session)
            while places and rows < self.batch and size < ROOM:
                step = _step(self.theirs, session, places[0], self.batch - rows)
                steps.append(step)
                places[:1] = [step.next] if step.next else []
                rows, size = rows + step.rows, size + step.size
            session.commit()
        self.places = places
        for step in steps:
            self.written += step.written
            self.removed += step.removed
            self.done += len(step.texts)
            for text in step.texts:
                self.digesting.add(step.kind, text)

    def finish(self) -> Digest:
        """Write the head and take the mark away, if the digests are equal."""
        wanted = self.digesting.result()
        with self.target.transaction(self.space, write=True) as session:
            self._check_ours(session)
            session.replace(HEADS, [self.head])
            put_note(session, evolve(self._note, unfinished=False, clock=str(self.head.clock)))
            differing = wanted.differing_kinds(digest_space(session, self.target.dictionary))
            if differing:
                raise CopyDiffers(self.target.url, self.space, differing)
            session.commit()
        return wanted

    @property
    def _note(self) -> Note:
        if self.note is None:
            raise AssertionError("a copy begins before it goes on")
        return self.note

    def _check_ours(self, session: Session) -> None:
        """Refuse to go on where somebody has written since the copy began, or copies too."""
        head, note = session.head, note_of(session)
        ours = note == self._note and head is not None and str(head.clock) == self._note.clock
        # The answer to our last commit may have been lost.
        if not ours and head != self.head:
            raise SpaceRefused(self.target.url, self.space, WORKED_IN)


@frozen
class _Step:
    """What was done for some keys of a kind, and where to go on with it."""

    kind: Kind[Any]
    next: _Place | None
    rows: int
    size: int
    written: int
    removed: int
    texts: list[bytes]


def _step(theirs: Session, ours: Session, place: _Place, limit: int) -> _Step:
    """Make a stretch of keys the same on both sides, or clear it of what is not the same."""
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
        look = max(1, min(ROOM * count // (size + 1), PAGE))
        following = evolve(place, after=(end,), look=look)
    return _Step(
        kind,
        following,
        rows=count,
        size=size,
        written=len(new) + len(changed),
        removed=len(gone),
        texts=[] if place.clearing else list(wanted_texts.values()),
    )
