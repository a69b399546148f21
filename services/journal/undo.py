"""Revert a change set: undo its whole transaction, or nothing of it."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from herdbook.domain.entity import evolve
from herdbook.domain.errors import InvalidValue
from herdbook.domain.journal import Op
from herdbook.domain.plan.model import ChangeSet, ChangeSetStatus
from herdbook.domain.plan.phases import reopen
from herdbook.ports.engine.dictionary import CHANGE_SETS, PHASES, PROPOSALS, TASKS, WORKTREES
from herdbook.ports.engine.kinds import Kind
from herdbook.ports.engine.query import Query, find, matches
from herdbook.ports.repositories.base import PAGE
from herdbook.ports.unit_of_work.changes import RowReader
from herdbook.ports.unit_of_work.integrity import plan_removal
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services.journal.journal_effects import (
    STAMP_FIELDS,
    Effect,
    effects,
    refuse_changed,
    refuse_unrecoverable,
    restore_changed,
    restore_removed,
)

E = TypeVar("E")

MAX_NAMED_ROWS = 3
"""How many rows a refusal names."""
ByKind = dict[Kind[Any], dict[str, Effect]]


def revert(uow: UnitOfWork, change_set_id: str) -> ChangeSet:
    """Undo all that the journal has of a change set's transaction.

    Rows it added are removed, rows it changed are as before, and rows it removed are inserted
    again; proposals are pending again. Append-only rows that it added stay.

    Raises StaleWrite, with the fields, for a row that changed since, and InvalidValue for rows that
    were removed since, that would be removed along, or that the journal cannot restore.
    """
    change_set = uow.change_sets.get(change_set_id)
    if change_set.status is ChangeSetStatus.REVERTED:
        reason = f"change set {change_set.id!r} is reverted already. Nothing was written"
        raise InvalidValue("status", reason)
    found_effects = _effects_of(uow, change_set)
    for effect in found_effects:
        refuse_unrecoverable(effect)
    saved = _changed_rows(uow, change_set, found_effects)
    added = _added_rows(uow, found_effects)
    _refuse_cascades(uow, change_set, saved, added)
    # Rows that were moved under a new row must be moved back before that one is removed. All other
    # new rows are removed first, because they may conflict with the rows to restore.
    _remove_added(uow, added, lambda kind: not _cascading_rows(uow, uow, added, kind))
    _insert_removed(uow, [effect for effect in found_effects if effect.op is Op.REMOVE])
    _save_changed(uow, saved)
    _remove_added(uow, added, lambda _: True)
    _keep_begun(uow, change_set, saved.get(PHASES, ()))
    uow.reactions.exclude(PHASES, [*_empty_phases(uow), *_settled_phases(uow, change_set.tx)])
    reverted = evolve(uow.change_sets.get(change_set.id), status=ChangeSetStatus.REVERTED)
    return uow.change_sets.save(reverted)


def _effects_of(uow: UnitOfWork, change_set: ChangeSet) -> list[Effect]:
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


def _changed_rows(
    uow: UnitOfWork, change_set: ChangeSet, found_effects: Iterable[Effect]
) -> ByKind:
    """The effects on rows it changed; raises StaleWrite if one has changed since."""
    found: ByKind = {}
    for effect in found_effects:
        if effect.op is not Op.SAVE or effect.was.keys() <= STAMP_FIELDS:
            continue
        (row,) = uow.get(effect.kind, [effect.key])
        if row is not None:
            refuse_changed(effect, row)
            found.setdefault(effect.kind, {})[effect.key] = effect
        elif effect.kind is not PROPOSALS:  # one removed with its agent need not be pending again
            reason = f"{effect.what} is gone since. Nothing was written"
            raise InvalidValue("change_set_id", f"{change_set.id!r} cannot be taken back: {reason}")
    return found


def _added_rows(uow: UnitOfWork, found_effects: Iterable[Effect]) -> ByKind:
    """The effects on added rows that still exist; raises StaleWrite if one has changed since."""
    found: ByKind = {}
    for effect in found_effects:
        if effect.op is not Op.ADD:
            continue
        (row,) = uow.get(effect.kind, [effect.key])
        if row is not None:
            if not effect.kind.append_only:
                refuse_changed(effect, row)
            found.setdefault(effect.kind, {})[effect.key] = effect
    return found


def _existing_rows(uow: UnitOfWork, kind: Kind[Any], keys: Iterable[str]) -> list[Any]:
    return [row for row in uow.get(kind, list(keys)) if row is not None]


def _cascading_rows(uow: UnitOfWork, read: RowReader, added: ByKind, kind: Kind[Any]) -> list[str]:
    """The rows that would be removed along and that the transaction did not add, as text."""
    rows = _existing_rows(uow, kind, added[kind])
    removed, _ = plan_removal(read, uow.dictionary, kind, rows)
    return [
        f"{each.title} {key!r}"
        for each, gone in removed.items()
        for key in gone
        if key not in added.get(each, {})
    ]


class _RevertedView:
    """A view of the space in which all changed rows are as they were before."""

    def __init__(self, uow: UnitOfWork, saved: ByKind) -> None:
        self._uow = uow
        self._rows = {
            kind: {
                key: restore_changed(own[key], row) for key, row in _by_key(uow, kind, own).items()
            }
            for kind, own in saved.items()
        }

    def get(self, kind: Kind[E], keys: Sequence[Any]) -> list[E | None]:
        """Rows by key."""
        known: dict[str, Any] = self._rows.get(kind, {})
        found: list[E | None] = self._uow.get(kind, keys)
        return [known.get(key, row) for key, row in zip(keys, found, strict=True)]

    def select(self, query: Query[E]) -> list[E]:
        """The rows of a query, in no particular order."""
        known: dict[str, Any] = self._rows.get(query.kind, {})
        others = [row for row in self._uow.select(query) if query.kind.key_of(row) not in known]
        return others + [row for row in known.values() if matches(query, row)]


def _by_key(uow: UnitOfWork, kind: Kind[Any], keys: Iterable[str]) -> dict[str, Any]:
    return {kind.key_of(row): row for row in _existing_rows(uow, kind, keys)}


def _refuse_cascades(uow: UnitOfWork, change_set: ChangeSet, saved: ByKind, added: ByKind) -> None:
    """Raise InvalidValue if removing the added rows would remove others along."""
    view = _RevertedView(uow, saved)
    going = [kind for kind in added if not kind.append_only]
    found = (name for kind in going for name in _cascading_rows(uow, view, added, kind))
    along = list(dict.fromkeys(found))
    if along:
        more = f" and {len(along) - MAX_NAMED_ROWS} more" if len(along) > MAX_NAMED_ROWS else ""
        raise InvalidValue(
            "change_set_id",
            f"{change_set.id!r} cannot be taken back: {', '.join(along[:MAX_NAMED_ROWS])}{more} "
            "would go with what it added. Nothing was written",
        )


def _remove_added(uow: UnitOfWork, added: ByKind, may_go: Callable[[Kind[Any]], bool]) -> None:
    """Remove the added rows, referrers first; append-only rows stay."""
    for kind in uow.dictionary.referrers_first:
        if kind in added and not kind.append_only and may_go(kind):
            rows = _existing_rows(uow, kind, added[kind])
            if rows:
                uow.remove(kind, [kind.key_of(row) for row in rows])


def _insert_removed(uow: UnitOfWork, removed: Sequence[Effect]) -> None:
    rows: dict[Kind[Any], list[Any]] = {}
    for effect in removed:
        rows.setdefault(effect.kind, []).append(restore_removed(effect))
    if rows:
        uow.insert_verbatim(rows)


def _save_changed(uow: UnitOfWork, saved: ByKind) -> None:
    for kind, own in saved.items():
        rows = uow.get_existing(kind, list(own))
        uow.save(kind, [restore_changed(own[kind.key_of(row)], row) for row in rows])


def _empty_phases(uow: UnitOfWork) -> list[str]:
    """The phases that this transaction took tasks from and that have none left.

    They are as they were before the tasks came, and are not finished by their going.
    """
    return [
        each
        for each in _phases_of_tasks(uow)
        if not uow.select(find(TASKS, {"phase_id": each}, limit=1))
    ]


def _settled_phases(uow: UnitOfWork, tx: str) -> list[str]:
    """The phases of changed tasks that neither the undone transaction nor anybody since changed.

    They had their status before it, perhaps from a person, and keep it.
    """
    first = uow.journal.of_tx(tx)[0].seq
    return [
        each
        for each in _phases_of_tasks(uow)
        if all(entry.seq < first for entry in uow.journal.of_row(PHASES, each))
    ]


def _phases_of_tasks(uow: UnitOfWork) -> list[str]:
    """The phases of the tasks that this transaction has changed."""
    tasks = (row for change in uow.changes if change.kind is TASKS for row in change.rows)
    return list(dict.fromkeys(task.phase_id for task in tasks if task.phase_id is not None))


def _keep_begun(uow: UnitOfWork, change_set: ChangeSet, phases: Iterable[str]) -> None:
    """A phase that was finished before is not finished again if a task came into it since."""
    for phase in uow.phases.get_many(phases):
        begun = reopen(phase)
        if begun is phase:
            continue
        left = uow.tasks.select_all(find(TASKS, {"phase_id": phase.id}, limit=PAGE))
        if any(not task.is_finished and task.created_at > change_set.created_at for task in left):
            uow.phases.save(begun)
