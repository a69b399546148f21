"""Take back what a change set stands for: the whole of one transaction, or nothing of it."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from herdbook.domain.entity import evolve
from herdbook.domain.errors import InvalidValue
from herdbook.domain.journal import Op
from herdbook.domain.plan.model import ChangeSet, ChangeSetStatus
from herdbook.domain.plan.phases import reopen
from herdbook.ports.engine.dictionary import CHANGE_SETS, PHASES, PROPOSALS, TASKS, WORKTREES
from herdbook.ports.engine.kinds import Kind
from herdbook.ports.engine.query import Query, admits, find
from herdbook.ports.repositories.base import PAGE
from herdbook.ports.unit_of_work.changes import Reads
from herdbook.ports.unit_of_work.integrity import to_remove
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services.journal.journal_effects import (
    STAMPED,
    Effect,
    brought_back,
    effects,
    put_back,
    refuse_changed,
    refuse_untold,
)

E = TypeVar("E")

NAMED = 3
"""How many rows a refusal names."""
ByKind = dict[Kind[Any], dict[str, Effect]]


def revert(uow: UnitOfWork, change_set_id: str) -> ChangeSet:
    """Undo all that the journal tells of a change set's transaction.

    What it added goes, what it changed is as it was, and what it removed is there again; proposals
    are pending again. Refused where something changed since: StaleWrite names the fields, and
    InvalidValue the rows that would have to go along or are gone. What was only said, in a row that
    is written once, stays said.
    """
    change_set = uow.change_sets.get(change_set_id)
    if change_set.status is ChangeSetStatus.REVERTED:
        reason = f"change set {change_set.id!r} is reverted already. Nothing was written"
        raise InvalidValue("status", reason)
    told = _told(uow, change_set)
    for effect in told:
        refuse_untold(effect)
    saved = _saved_and_there(uow, change_set, told)
    added = _added_and_there(uow, told)
    _refuse_company(uow, change_set, saved, added)
    # What was moved under a new row must be moved back before that goes. Any other new row goes
    # first, because it may stand in the way of what comes back.
    _take_out(uow, added, lambda kind: not _going_along(uow, uow, added, kind))
    _bring_back(uow, [effect for effect in told if effect.op is Op.REMOVE])
    _put_back(uow, saved)
    _take_out(uow, added, lambda _: True)
    _keep_begun(uow, change_set, saved.get(PHASES, ()))
    uow.reactions.exclude(PHASES, _empty_phases(uow))
    reverted = evolve(uow.change_sets.get(change_set.id), status=ChangeSetStatus.REVERTED)
    return uow.change_sets.save(reverted)


def _told(uow: UnitOfWork, change_set: ChangeSet) -> list[Effect]:
    """What the transaction did, but for the change set itself and the sight of a worktree.

    Where somebody worked is written with whatever was done there, and is no part of it.
    """
    entries = uow.journal.of_tx(change_set.tx)
    if not entries:
        reason = (
            f"the journal of this space does not tell of {change_set.tx!r}. Nothing was written"
        )
        raise InvalidValue("tx", reason)
    told = effects(uow.dictionary, entries)
    return [
        each
        for each in told
        if each.kind is not WORKTREES and (each.kind, each.key) != (CHANGE_SETS, change_set.id)
    ]


def _saved_and_there(uow: UnitOfWork, change_set: ChangeSet, told: Iterable[Effect]) -> ByKind:
    """What it changed, none of which may have changed since."""
    found: ByKind = {}
    for effect in told:
        if effect.op is not Op.SAVE or effect.was.keys() <= STAMPED:
            continue
        (row,) = uow.get(effect.kind, [effect.key])
        if row is not None:
            refuse_changed(effect, row)
            found.setdefault(effect.kind, {})[effect.key] = effect
        elif effect.kind is not PROPOSALS:  # one that went with its agent need not be pending again
            reason = f"{effect.what} is gone since. Nothing was written"
            raise InvalidValue("change_set_id", f"{change_set.id!r} cannot be taken back: {reason}")
    return found


def _added_and_there(uow: UnitOfWork, told: Iterable[Effect]) -> ByKind:
    """What it added and nobody removed, none of which may have changed since."""
    found: ByKind = {}
    for effect in told:
        if effect.op is not Op.ADD:
            continue
        (row,) = uow.get(effect.kind, [effect.key])
        if row is not None:
            if not effect.kind.append_only:
                refuse_changed(effect, row)
            found.setdefault(effect.kind, {})[effect.key] = effect
    return found


def _still_there(uow: UnitOfWork, kind: Kind[Any], keys: Iterable[str]) -> list[Any]:
    return [row for row in uow.get(kind, list(keys)) if row is not None]


def _going_along(uow: UnitOfWork, read: Reads, added: ByKind, kind: Kind[Any]) -> list[str]:
    """What the transaction did not add and would go with what it did, as a person names it."""
    rows = _still_there(uow, kind, added[kind])
    removed, _ = to_remove(read, uow.dictionary, kind, rows)
    return [
        f"{each.title} {key!r}"
        for each, gone in removed.items()
        for key in gone
        if key not in added.get(each, {})
    ]


class _PutBack:
    """The space as if all that was changed were as it was."""

    def __init__(self, uow: UnitOfWork, saved: ByKind) -> None:
        self._uow = uow
        self._rows = {
            kind: {key: put_back(own[key], row) for key, row in _by_key(uow, kind, own).items()}
            for kind, own in saved.items()
        }

    def get(self, kind: Kind[E], keys: Sequence[Any]) -> list[E | None]:
        """Rows by key."""
        known: dict[str, Any] = self._rows.get(kind, {})
        found: list[E | None] = self._uow.get(kind, keys)
        return [known.get(key, row) for key, row in zip(keys, found, strict=True)]

    def select(self, query: Query[E]) -> list[E]:
        """The answer to a query, in no particular order."""
        known: dict[str, Any] = self._rows.get(query.kind, {})
        others = [row for row in self._uow.select(query) if query.kind.key_of(row) not in known]
        return others + [row for row in known.values() if admits(query, row)]


def _by_key(uow: UnitOfWork, kind: Kind[Any], keys: Iterable[str]) -> dict[str, Any]:
    return {kind.key_of(row): row for row in _still_there(uow, kind, keys)}


def _refuse_company(uow: UnitOfWork, change_set: ChangeSet, saved: ByKind, added: ByKind) -> None:
    """Nobody but the change set itself may lose anything by what it added going."""
    view = _PutBack(uow, saved)
    going = [kind for kind in added if not kind.append_only]
    found = (name for kind in going for name in _going_along(uow, view, added, kind))
    along = list(dict.fromkeys(found))
    if along:
        more = f" and {len(along) - NAMED} more" if len(along) > NAMED else ""
        raise InvalidValue(
            "change_set_id",
            f"{change_set.id!r} cannot be taken back: {', '.join(along[:NAMED])}{more} would go "
            "with what it added. Nothing was written",
        )


def _take_out(uow: UnitOfWork, added: ByKind, may_go: Callable[[Kind[Any]], bool]) -> None:
    """Remove what was added, what refers to others first; what was said stays said."""
    for kind in uow.dictionary.referrers_first:
        if kind in added and not kind.append_only and may_go(kind):
            rows = _still_there(uow, kind, added[kind])
            if rows:
                uow.remove(kind, [kind.key_of(row) for row in rows])


def _bring_back(uow: UnitOfWork, removed: Sequence[Effect]) -> None:
    rows: dict[Kind[Any], list[Any]] = {}
    for effect in removed:
        rows.setdefault(effect.kind, []).append(brought_back(effect))
    if rows:
        uow.adopt(rows)


def _put_back(uow: UnitOfWork, saved: ByKind) -> None:
    for kind, own in saved.items():
        rows = uow.existing(kind, list(own))
        uow.save(kind, [put_back(own[kind.key_of(row)], row) for row in rows])


def _empty_phases(uow: UnitOfWork) -> list[str]:
    """The phases that this transaction took tasks from and that have none left.

    They are as they were before the tasks came, and are not finished by their going.
    """
    tasks = (row for change in uow.changes if change.kind is TASKS for row in change.rows)
    phases = dict.fromkeys(task.phase_id for task in tasks if task.phase_id is not None)
    return [each for each in phases if not uow.select(find(TASKS, {"phase_id": each}, limit=1))]


def _keep_begun(uow: UnitOfWork, change_set: ChangeSet, phases: Iterable[str]) -> None:
    """A phase that was finished before is not finished again if a task came into it since."""
    for phase in uow.phases.get_many(phases):
        begun = reopen(phase)
        if begun is phase:
            continue
        left = uow.tasks.every(find(TASKS, {"phase_id": phase.id}, limit=PAGE))
        if any(not task.finished and task.created_at > change_set.created_at for task in left):
            uow.phases.save(begun)
