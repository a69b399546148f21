"""Check a store: read everything, report what is wrong, and continue after it.

`repair` rebuilds what is derived from other rows, projections and an engine's own lookups, and
nothing else: a row that is lost or altered is for a person to judge.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from attrs import define, field, frozen

from herdbook.domain.errors import NotFound, StoreDamaged
from herdbook.domain.grading import Experience
from herdbook.domain.location.areas import area_of
from herdbook.ports.engine.dictionary import (
    HEADS,
    JOURNAL,
    OPENINGS,
    OPERATIONS,
    STANDINGS,
    WAITING,
)
from herdbook.ports.engine.kinds import Kind
from herdbook.ports.engine.long_work import long_work
from herdbook.ports.engine.paging import Progress, no_progress
from herdbook.ports.engine.query import find
from herdbook.ports.engine.store import (
    IntegrityFinding,
    Session,
    Store,
    SupportsExamine,
    SupportsVerify,
)
from herdbook.ports.unit_of_work.projections import find_differences, rebuild
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork, unit_of_work
from herdbook.services.stores.space_integrity import examine_journal, examine_rows
from herdbook.services.stores.transfer import is_empty, read_copy_note

DERIVED = (WAITING, OPENINGS, STANDINGS)

_UNREADABLE = (StoreDamaged, LookupError, ValueError)
"""The errors of reading a store that holds what Herdbook never wrote."""


@frozen
class Flaw:
    """Something wrong in a store: the space, the row, and a description."""

    space: str
    entity: str
    key: str | None
    what: str


@frozen
class RepairReport:
    """How many derived rows and lookup entries were rebuilt, and what could not be rebuilt."""

    derived: int
    lookups: int
    failed: tuple[Flaw, ...]


@long_work()
def check(
    store: Store,
    spaces: Sequence[str] | None = None,
    *,
    experience: Experience | None = None,
    progress: Progress = no_progress,
) -> list[Flaw]:
    """Everything that is wrong in a store, each space in one snapshot.

    Standings are recounted by the rules of `experience`. If something cannot be read to its end,
    that is a flaw too, and the rest is checked in another transaction.

    Raises StoreDamaged if the engine cannot safely open its own files: they are not read then.
    """
    if isinstance(store, SupportsVerify):
        store.verify()
    return [
        flaw
        for space in _spaces(store, spaces)
        for flaw in _SpaceCheck(store, space, experience or Experience(), progress).flaws()
    ]


def _spaces(store: Store, wanted: Sequence[str] | None) -> list[str]:
    """The spaces to check; raises NotFound for one that is neither listed nor has rows."""
    listed = store.spaces()
    for space in wanted or ():
        with store.transaction(space, write=False) as session:
            if space not in listed and is_empty(session, store):
                raise NotFound("space", space)
    return listed if wanted is None else list(wanted)


Examination = Callable[[Session], Iterator[IntegrityFinding]]


@define
class _SpaceCheck:
    """The check of one space."""

    store: Store
    space: str
    experience: Experience
    progress: Progress
    done: int = 0
    total: int = 0
    found: list[Flaw] = field(factory=list)

    def flaws(self) -> list[Flaw]:
        """Run all examinations, in one transaction as long as no error ends it."""
        rest = self._examinations()
        while rest:
            try:
                with self.store.transaction(self.space, write=False) as session:
                    while rest:
                        for finding in rest[0][1](session):
                            self._add(*finding)
                        rest.pop(0)
            except _UNREADABLE as error:
                name, _ = rest.pop(0)
                self._add(name, None, f"cannot be read to the end: {error}")
        self.progress(self.space, self.total, self.total)
        return self.found

    def _add(self, entity: str, key: str | None, what: str) -> None:
        self.found.append(Flaw(self.space, entity, key, what))

    def _examinations(self) -> list[tuple[str, Examination]]:
        """The examinations, each with the name of what it is about."""
        kinds = list(self.store.dictionary)
        return [
            ("rows", self._engine),
            (OPERATIONS.name, _find_unfinished_copy),
            *((kind.name, partial(self._rows, kind=kind)) for kind in kinds),
            (JOURNAL.name, self._journal),
            ("derived rows", self._projections),
        ]

    def _engine(self, session: Session) -> Iterator[IntegrityFinding]:
        self.total = sum(session.count(find(kind)) for kind in self.store.dictionary)
        if isinstance(session, SupportsExamine):
            yield from session.find_flaws(self.store.dictionary)

    def _rows(self, session: Session, kind: Kind[Any]) -> Iterator[IntegrityFinding]:
        if kind is JOURNAL:
            return
        if kind.area not in (None, area_of(self.space)):
            strangers = session.count(find(kind))
            if strangers:
                yield kind.name, None, f"{strangers} rows are in a space where they do not belong"
        yield from examine_rows(session, kind, self.store.dictionary, self._advance)

    def _journal(self, session: Session) -> Iterator[IntegrityFinding]:
        yield from examine_journal(session, self.store.dictionary, self._advance)

    def _projections(self, session: Session) -> Iterator[IntegrityFinding]:
        options: dict[str, Any] = {"write": False, "experience": self.experience}
        uow = UnitOfWork(session, self.store, self.space, **options)
        for actual, wanted in find_differences(uow):
            row = wanted if actual is None else actual
            kind = next(each for each in DERIVED if isinstance(row, each.entity))
            yield kind.name, str(kind.key_of(row)), _describe_difference(actual, wanted)

    def _advance(self, rows: int) -> None:
        self.done += rows
        self.progress(self.space, min(self.done, self.total), self.total)


def _find_unfinished_copy(session: Session) -> Iterator[IntegrityFinding]:
    note = read_copy_note(session)
    if note is not None and note.unfinished:
        yield HEADS.name, None, "the space is an unfinished copy; copy into it once more"


def _describe_difference(actual: object, wanted: object) -> str:
    """How a derived row differs from what it should be."""
    if actual is None:
        return "follows from other rows and is not there"
    if wanted is None:
        return "is there and follows from nothing"
    if type(actual) is not type(wanted):
        return "is there in the place of another"
    differing = [name for name, value in vars(actual).items() if vars(wanted)[name] != value]
    return f"its {', '.join(differing)} is not what follows from other rows"


@long_work()
def repair(
    store: Store, spaces: Sequence[str] | None = None, *, experience: Experience | None = None
) -> RepairReport:
    """Rebuild derived rows and lookups, each space in one transaction; all else stays as it is.

    A lost lease counts as expired. What cannot be rebuilt, because the rows it is derived from are
    damaged, is listed in `failed`.
    """
    derived = lookups = 0
    failed: list[Flaw] = []
    for space in _spaces(store, spaces):
        with unit_of_work(store, space, experience=experience) as uow:
            if any(_find_unfinished_copy(uow.session)):
                failed.append(
                    Flaw(space, HEADS.name, None, "is an unfinished copy and stays as it is")
                )
                continue
            mended = rebuilt = 0
            if isinstance(uow.session, SupportsExamine):
                mended = uow.session.repair_lookups(store.dictionary)
            try:
                rebuilt = rebuild(uow)
            except _UNREADABLE as error:
                failed.append(Flaw(space, "derived rows", None, f"cannot be rebuilt: {error}"))
            if mended or rebuilt:
                uow.commit()
        derived, lookups = derived + rebuilt, lookups + mended
    return RepairReport(derived, lookups, tuple(failed))
