"""Merge a store into another: what the target lacks is added, and nothing there is touched.

A row whose key the target has is kept as the target has it, whatever the source says. A row that
cannot come, because of what the target holds, is told with its reason and holds up no other.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from attrs import define, field, frozen

from herdbook.domain.errors import CycleRefused, StoreUnavailable
from herdbook.domain.grading import Experience
from herdbook.domain.journal import NOBODY, Actor
from herdbook.domain.location.areas import area_of
from herdbook.ports.engine.codec import revive
from herdbook.ports.engine.dictionary import PHASE_DEPENDENCIES, PHASES, TASK_DEPENDENCIES, TASKS
from herdbook.ports.engine.kinds import Dictionary, Kind, OnDelete, Reference
from herdbook.ports.engine.long_work import long_work
from herdbook.ports.engine.paging import Progress, pages, silent
from herdbook.ports.engine.query import find
from herdbook.ports.engine.store import Session, Store, TryAgain
from herdbook.ports.unit_of_work.cycles import refuse_cycles
from herdbook.ports.unit_of_work.integrity import clashes
from herdbook.ports.unit_of_work.run import insist
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork, unit_of_work
from herdbook.services.stores.transfer import refuse_unfinished, spaces_of

_GRAPH = (PHASES, PHASE_DEPENDENCIES, TASKS, TASK_DEPENDENCIES)
"""What can close a cycle, what others refer to first."""


@frozen
class Failure:
    """A row that could not come, and why."""

    space: str
    entity: str
    key: str
    reason: str


@frozen
class MergeReport:
    """How many rows came, how many were there already, and which could not come."""

    added: int
    kept: int
    failed: tuple[Failure, ...]


@long_work()
def merge(
    source: Store,
    target: Store,
    spaces: Sequence[str] | None = None,
    *,
    actor: Actor = NOBODY,
    experience: Experience | None = None,
    progress: Progress = silent,
) -> MergeReport:
    """Add to the target what only the source has, in one transaction for each space.

    What is added is journalled by the target as its own doing and counted by its own rules of
    `experience`; the source's journal, leases and
    answers of operations stay where they are. Merging again adds nothing. From an unfinished copy
    comes what it has; SpaceRefused where the target is one.
    """
    reports = []
    for space in spaces_of(source, target, spaces):
        with source.transaction(space, write=False) as theirs:
            told = _Told(theirs, source.dictionary, space, target, progress)
            merging = partial(_merge_into, target, told, actor, experience)
            reports.append(insist(merging, target.patience))
    return MergeReport(
        added=sum(each.added for each in reports),
        kept=sum(each.kept for each in reports),
        failed=tuple(failure for each in reports for failure in each.failed),
    )


@frozen
class _Told:
    """What there is to be merged, and whom to tell how it goes."""

    theirs: Session
    dictionary: Dictionary
    space: str
    target: Store
    progress: Progress

    def kinds(self) -> list[Kind[Any]]:
        """The kinds that come from elsewhere, what others refer to first."""
        area = area_of(self.space)
        referred_first = reversed(self.dictionary.referrers_first)
        return [kind for kind in referred_first if kind.area is area and not kind.derived]


def _merge_into(
    target: Store, told: _Told, actor: Actor, experience: Experience | None
) -> MergeReport:
    with unit_of_work(target, told.space, actor=actor, experience=experience) as uow:
        report = _merge_space(uow, told)
        if report.added:
            _commit(uow, target)
    return report


def _commit(uow: UnitOfWork, target: Store) -> None:
    try:
        uow.commit()
    except TryAgain as error:
        # Another attempt would find the rows there and count them among those that were kept.
        reason = "the answer to the commit was lost; merge again, which adds what did not come"
        raise StoreUnavailable(target.url, reason) from error


def _merge_space(uow: UnitOfWork, told: _Told) -> MergeReport:
    refuse_unfinished(uow.session, told.target, told.space)
    kinds = told.kinds()
    total = sum(told.theirs.count(find(kind)) for kind in kinds)
    arriving = _Arriving(uow)
    kept = done = 0
    for kind in kinds:
        for page in pages(told.theirs, kind):
            there = uow.session.get(kind, [kind.key_of(row) for row in page])
            lacked = [row for row, own in zip(page, there, strict=True) if own is None]
            arriving.take(kind, lacked)
            kept += len(page) - len(lacked)
            done += len(page)
            told.progress(told.space, done, total)
    arriving.sort_out()
    added = arriving.adopted()
    failed = tuple(
        Failure(told.space, kind.title, str(key), reason)
        for kind, reasons in arriving.failed.items()
        for key, reason in reasons.items()
    )
    return MergeReport(added, kept, failed)


@define
class _Arriving:
    """The rows the target lacks: those that can come, and those that cannot with their reasons."""

    uow: UnitOfWork
    rows: dict[Kind[Any], dict[Any, Any]] = field(factory=dict)
    failed: dict[Kind[Any], dict[Any, str]] = field(factory=dict)

    def take(self, kind: Kind[Any], rows: Sequence[Any]) -> None:
        """Let rows be candidates."""
        self.rows.setdefault(kind, {}).update((kind.key_of(row), row) for row in rows)

    def sort_out(self) -> None:
        """Find out which rows cannot come, and empty what names one of them and may be empty."""
        for kind, rows in self.rows.items():
            own = list(rows.values())
            for row, holder, unique in clashes(self.uow, kind, own, [None] * len(own)):
                taken = f"{kind.title} {str(kind.key_of(holder))!r} has its"
                self._fail(kind, kind.key_of(row), f"{taken} {' and '.join(unique.fields)}")
        self._settle()
        whole = [row for kind in _GRAPH for row in self.rows.get(kind, {}).values()]
        if self._cycle(whole) is None:
            return
        for kind in _GRAPH:
            self._admit(kind, list(self._in_order(kind)))
            self._settle()

    def adopted(self) -> int:
        """Add those that can come; how many they were."""
        coming = {kind: list(rows.values()) for kind, rows in self.rows.items() if rows}
        self.uow.reactions.disable()
        self.uow.adopt(coming)
        return sum(map(len, coming.values()))

    def _fail(self, kind: Kind[Any], key: Any, reason: str) -> None:  # noqa: ANN401 - any kind's key
        if self.rows[kind].pop(key, None) is not None:
            self.failed.setdefault(kind, {})[key] = reason

    def _settle(self) -> None:
        """Go on until no row that comes names one that neither comes nor is there."""
        missing = {}
        for kind, rows in self.rows.items():
            for reference in kind.references:
                missing[kind, reference] = self._missing(reference, rows)
        changed = True
        while changed:
            changed = False
            for (kind, reference), absent in missing.items():
                lost = absent | self.failed.get(self._target(reference), {}).keys()
                for key, row in list(self.rows[kind].items()):
                    name = getattr(row, reference.field)
                    if name is None or name not in lost:
                        continue
                    changed = True
                    if reference.on_delete is OnDelete.SET_NULL:
                        self.rows[kind][key] = revive(kind, {**vars(row), reference.field: None})
                    else:
                        title = self._target(reference).title
                        self._fail(kind, key, f"its {title} {str(name)!r} is not there")

    def _target(self, reference: Reference) -> Kind[Any]:
        return self.uow.dictionary.kinds[reference.target]

    def _missing(self, reference: Reference, rows: dict[Any, Any]) -> set[Any]:
        """What rows name that does not arrive and is not in the target either."""
        kind = self._target(reference)
        names = {getattr(row, reference.field) for row in rows.values()} - {None}
        elsewhere = sorted(names - self.rows.get(kind, {}).keys())
        found = self.uow.get(kind, elsewhere)
        return {name for name, row in zip(elsewhere, found, strict=True) if row is None}

    def _in_order(self, kind: Kind[Any]) -> Iterator[Any]:
        """The rows of a kind, each behind the one it hangs on."""
        rows = self.rows.get(kind, {})
        above = [each.field for each in kind.references if each.target == kind.name]
        if not above:
            yield from rows.values()
            return
        given: set[Any] = set()
        for key in rows:
            trail: list[Any] = []
            while key in rows and key not in given:
                given.add(key)
                trail.append(rows[key])
                key = getattr(rows[key], above[0])  # noqa: PLW2901 - on the way up
            yield from reversed(trail)

    def _cycle(self, rows: Sequence[Any]) -> CycleRefused | None:
        """How the target would refuse these rows, if they close a cycle there."""
        try:
            refuse_cycles(self.uow, [(None, row) for row in rows])
        except CycleRefused as refusal:
            return refusal
        return None

    def _admit(self, kind: Kind[Any], rows: list[Any]) -> None:
        """Fail the rows of a kind that close a cycle, as few as their order allows."""
        earlier = [
            row for each in _GRAPH[: _GRAPH.index(kind)] for row in self.rows.get(each, {}).values()
        ]
        accepted: list[Any] = []
        parts = [rows] if rows else []
        while parts:
            part = parts.pop()
            refusal = self._cycle([*earlier, *accepted, *part])
            if refusal is None:
                accepted += part
            elif len(part) == 1:
                self._fail(kind, kind.key_of(part[0]), str(refusal))
            else:
                half = len(part) // 2
                parts += [part[half:], part[:half]]
