"""Merge a store into another: rows that the target lacks are added, and none is changed.

A row whose key exists in the target stays as the target has it. A row that cannot be added because
of the target's rows is reported with its reason and does not stop the others. A thread of
checkpoints comes as a whole or not at all: two threads of one name are never mixed.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from attrs import define, field, frozen

from herdbook.domain.checkpoints.model import decode_text
from herdbook.domain.errors import CycleRefused, StoreUnavailable
from herdbook.domain.grading import Experience
from herdbook.domain.journal import NOBODY, Actor, Cause
from herdbook.domain.location.areas import area_of
from herdbook.ports.engine.codec import construct_unchecked
from herdbook.ports.engine.derived_ids import with_derived_id
from herdbook.ports.engine.dictionary import (
    CHECKPOINTS,
    LANES,
    PHASE_DEPENDENCIES,
    PHASES,
    PIECES,
    TASK_DEPENDENCIES,
    TASKS,
    WRITES,
)
from herdbook.ports.engine.kinds import Dictionary, Kind, OnDelete, Reference
from herdbook.ports.engine.long_work import long_work
from herdbook.ports.engine.paging import Progress, no_progress, select_pages
from herdbook.ports.engine.query import find
from herdbook.ports.engine.store import Session, Store, TryAgain
from herdbook.ports.unit_of_work.cycles import (
    BELOW,
    own_ancestors,
    parent_field,
    refuse_cycles,
)
from herdbook.ports.unit_of_work.integrity import find_clashes
from herdbook.ports.unit_of_work.run import retry
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork, unit_of_work
from herdbook.services.stores.transfer import refuse_unfinished, select_spaces

_GRAPH_KINDS = (PHASES, PHASE_DEPENDENCIES, TASKS, TASK_DEPENDENCIES)
"""The kinds that can close a cycle, referenced kinds first."""
_THREAD_KINDS = (LANES, CHECKPOINTS, PIECES, WRITES)
"""The kinds that make up a thread of checkpoints."""


@frozen
class MergeFailure:
    """A row that could not be added, and the reason."""

    space: str
    entity: str
    key: str
    reason: str


@frozen
class MergeReport:
    """How many rows were added, how many existed already, and which could not be added."""

    added: int
    kept: int
    failed: tuple[MergeFailure, ...]


@long_work()
def merge(
    source: Store,
    target: Store,
    spaces: Sequence[str] | None = None,
    *,
    into: Mapping[str, str] | None = None,
    actor: Actor = NOBODY,
    experience: Experience | None = None,
    progress: Progress = no_progress,
) -> MergeReport:
    """Add the rows that only the source has to the target, in one transaction for each space.

    Added rows are journalled by the target as its own changes and counted by its own rules of
    `experience`; the source's journal, leases and operation results are not merged. Merging again
    adds nothing. `into` names the spaces of the target where they are others than the source's. An
    unfinished copy can be a source; raises SpaceRefused if the target is one.
    """
    reports = []
    for space in select_spaces(source, target, spaces):
        with source.transaction(space, write=False) as theirs:
            to = (into or {}).get(space, space)
            incoming = _MergeSource(theirs, source.dictionary, to, target, progress)
            merging = partial(_merge_into, target, incoming, actor, experience)
            reports.append(retry(merging, target.patience))
    return MergeReport(
        added=sum(each.added for each in reports),
        kept=sum(each.kept for each in reports),
        failed=tuple(failure for each in reports for failure in each.failed),
    )


@frozen
class _MergeSource:
    """A space of the source, the target and the space there, and the progress callback."""

    theirs: Session
    dictionary: Dictionary
    space: str
    target: Store
    progress: Progress

    def kinds(self) -> list[Kind[Any]]:
        """The kinds to merge, without derived ones, referenced kinds first."""
        area = area_of(self.space)
        referred_first = reversed(self.dictionary.referrers_first)
        return [kind for kind in referred_first if kind.area is area and not kind.derived]


def _merge_into(
    target: Store, incoming: _MergeSource, actor: Actor, experience: Experience | None
) -> MergeReport:
    with unit_of_work(target, incoming.space, actor=actor, experience=experience) as uow:
        uow.cause = Cause.MERGE
        report = _merge_space(uow, incoming)
        if report.added:
            _commit(uow, target)
    return report


def _commit(uow: UnitOfWork, target: Store) -> None:
    try:
        uow.commit()
    except TryAgain as error:
        # A retry would find the rows in the target and count them as kept.
        reason = "the answer to the commit was lost; merge again, which adds what did not come"
        raise StoreUnavailable(target.url, reason) from error


def _merge_space(uow: UnitOfWork, incoming: _MergeSource) -> MergeReport:
    refuse_unfinished(uow.session, incoming.target, incoming.space)
    kinds = incoming.kinds()
    total = sum(incoming.theirs.count(find(kind)) for kind in kinds)
    candidates = _Candidates(uow)
    kept = done = 0
    for kind in kinds:
        for their_page in select_pages(incoming.theirs, kind):
            page = [with_derived_id(kind, row) for row in their_page]
            there = uow.session.get(kind, [kind.key_of(row) for row in page])
            lacked = [row for row, own in zip(page, there, strict=True) if own is None]
            candidates.add(kind, lacked)
            kept += len(page) - len(lacked)
            done += len(page)
            incoming.progress(incoming.space, done, total)
    candidates.reject_impossible()
    others = candidates.reject_other_threads(incoming.theirs)
    added = candidates.insert()
    failed = [
        MergeFailure(incoming.space, kind.title, str(key), reason)
        for kind, reasons in candidates.failed.items()
        for key, reason in reasons.items()
    ]
    reason = "a thread of this name is there and has gone on by itself; `checkpoint copy` renames"
    failed += [MergeFailure(incoming.space, "thread", name, reason) for name in others]
    return MergeReport(added, kept, tuple(failed))


@define
class _Candidates:
    """The rows the target lacks: those that can be added, and the rejected ones with reasons."""

    uow: UnitOfWork
    rows: dict[Kind[Any], dict[Any, Any]] = field(factory=dict)
    failed: dict[Kind[Any], dict[Any, str]] = field(factory=dict)

    def add(self, kind: Kind[Any], rows: Sequence[Any]) -> None:
        """Add rows as candidates."""
        self.rows.setdefault(kind, {}).update((kind.key_of(row), row) for row in rows)

    def reject_impossible(self) -> None:
        """Reject rows that cannot be added, and set nullable references to them to null."""
        for kind, rows in self.rows.items():
            own = list(rows.values())
            for row, holder, unique in find_clashes(self.uow, kind, own, [None] * len(own)):
                taken = f"{kind.title} {str(kind.key_of(holder))!r} has its"
                self._reject(kind, kind.key_of(row), f"{taken} {' and '.join(unique.fields)}")
            if field := parent_field(kind):
                parents = {key: getattr(row, field) for key, row in rows.items()}
                for key, cycle in own_ancestors(parents):
                    self._reject(kind, key, str(CycleRefused(cycle, BELOW)))
        self._drop_dangling()
        whole = [row for kind in _GRAPH_KINDS for row in self.rows.get(kind, {}).values()]
        if self._cycle(whole) is None:
            return
        for kind in _GRAPH_KINDS:
            self._drop_cycles(kind, list(self._in_order(kind)))
            self._drop_dangling()

    def reject_other_threads(self, theirs: Session) -> list[str]:
        """Reject threads that the target has and the source does not continue; return their names.

        The source continues a thread if it has the newest checkpoint that the target has of it.
        """
        names = []
        for thread in {row.thread: None for row in self.rows.get(CHECKPOINTS, {}).values()}:
            last = find(CHECKPOINTS, {"thread": thread}, by=("place",), descending=True, limit=1)
            newest = self.uow.session.select(last)
            if not newest or theirs.get(CHECKPOINTS, [newest[0].id])[0] is not None:
                continue
            lane = theirs.select(find(LANES, {"thread": thread}, limit=1))[0]
            names.append(decode_text(lane.thread_id))
            for kind in _THREAD_KINDS:
                rows = self.rows[kind]
                self.rows[kind] = {k: row for k, row in rows.items() if row.thread != thread}
        return names

    def insert(self) -> int:
        """Insert the candidates; returns how many."""
        coming = {kind: list(rows.values()) for kind, rows in self.rows.items() if rows}
        self.uow.reactions.disable()
        self.uow.insert_verbatim(coming)
        return sum(map(len, coming.values()))

    def _reject(self, kind: Kind[Any], key: Any, reason: str) -> None:  # noqa: ANN401 - any kind's key
        if self.rows[kind].pop(key, None) is not None:
            self.failed.setdefault(kind, {})[key] = reason

    def _drop_dangling(self) -> None:
        """Repeat until every reference of a candidate is to another candidate or a stored row."""
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
                        self.rows[kind][key] = construct_unchecked(
                            kind, {**vars(row), reference.field: None}
                        )
                    else:
                        title = self._target(reference).title
                        self._reject(kind, key, f"its {title} {str(name)!r} is not there")

    def _target(self, reference: Reference) -> Kind[Any]:
        return self.uow.dictionary.kinds[reference.target]

    def _missing(self, reference: Reference, rows: dict[Any, Any]) -> set[Any]:
        """The referenced keys that are neither candidates nor in the target."""
        kind = self._target(reference)
        names = {getattr(row, reference.field) for row in rows.values()} - {None}
        elsewhere = sorted(names - self.rows.get(kind, {}).keys())
        found = self.uow.get(kind, elsewhere)
        return {name for name, row in zip(elsewhere, found, strict=True) if row is None}

    def _in_order(self, kind: Kind[Any]) -> Iterator[Any]:
        """The rows of a kind, each after its parent."""
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
        """The error for these rows if they close a cycle in the target, else None."""
        try:
            refuse_cycles(self.uow, [(None, row) for row in rows])
        except CycleRefused as refusal:
            return refusal
        return None

    def _drop_cycles(self, kind: Kind[Any], rows: list[Any]) -> None:
        """Reject the rows of a kind that close a cycle, as few as their order allows."""
        earlier = [
            row
            for each in _GRAPH_KINDS[: _GRAPH_KINDS.index(kind)]
            for row in self.rows.get(each, {}).values()
        ]
        accepted: list[Any] = []
        parts = [rows] if rows else []
        while parts:
            part = parts.pop()
            refusal = self._cycle([*earlier, *accepted, *part])
            if refusal is None:
                accepted += part
            elif len(part) == 1:
                self._reject(kind, kind.key_of(part[0]), str(refusal))
            else:
                half = len(part) // 2
                parts += [part[half:], part[:half]]
