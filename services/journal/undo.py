"""Undo a transaction, or revert a change set: the whole of it, or nothing."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple, TypeVar

from herdbook.domain.entity import evolve
from herdbook.domain.errors import InvalidValue, NotFound
from herdbook.domain.journal import UNDO_NOTE, Cause, JournalEntry, Op
from herdbook.domain.plan.model import ChangeSet, ChangeSetStatus
from herdbook.domain.plan.phases import reopen
from herdbook.ports.engine.dictionary import (
    CHANGE_SETS,
    JOURNAL,
    PHASES,
    PROPOSALS,
    TASKS,
    WORKTREES,
)
from herdbook.ports.engine.kinds import Kind
from herdbook.ports.engine.query import Query, find, matches
from herdbook.ports.repositories.base import PAGE
from herdbook.ports.unit_of_work.changes import RowReader
from herdbook.ports.unit_of_work.integrity import plan_removal
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services.journal.journal_effects import (
    STAMP_FIELDS,
    Effect,
    describe_row,
    effects,
    refuse_changed,
    refuse_unrecoverable,
    restore_changed,
    restore_removed,
)

E = TypeVar("E")

MAX_NAMED_ROWS = 3
"""How many rows a refusal names."""
LONGEST_NUMBER = 19
PAGES_SEARCHED = 10
"""How many pages of the journal are searched for the last change of who acts."""
ByKind = dict[Kind[Any], dict[str, Effect]]


class UndoneChange(NamedTuple):
    """A transaction that was taken back: its first entry, its time, and what became of its rows."""

    tx: str
    seq: int
    at: datetime
    removed: list[str]
    changed: list[str]
    restored: list[str]


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
    _undo_entries(uow, uow.journal.of_tx(change_set.tx), change_set.tx, change_set)
    reverted = evolve(uow.change_sets.get(change_set.id), status=ChangeSetStatus.REVERTED)
    return uow.change_sets.save(reverted)


def undo(uow: UnitOfWork, tx: str | None = None) -> UndoneChange:
    """Take back a transaction: the named one, or the last one of who acts.

    It is named by its id, a unique prefix of it, or the number of one of its entries. Raises
    NotFound if there is none, and what `revert` raises; a claim is not taken back, since a fence
    never decreases.
    """
    entries = _named_entries(uow, tx) if tx else _last_entries(uow)
    found = entries[0].tx
    change_set = uow.change_sets.of_tx(found)
    if change_set is not None and change_set.status is ChangeSetStatus.APPLIED:
        own = _undo_entries(uow, entries, found, change_set)
        uow.change_sets.save(
            evolve(uow.change_sets.get(change_set.id), status=ChangeSetStatus.REVERTED)
        )
    else:
        own = _undo_entries(uow, entries, found, None)
    uow.add_note(f"{UNDO_NOTE}{found}")
    by_op = {op: [_describe(uow, each) for each in own if each.op is op] for op in Op}
    return UndoneChange(
        found, entries[0].seq, entries[0].time, by_op[Op.ADD], by_op[Op.SAVE], by_op[Op.REMOVE]
    )


def _describe(uow: UnitOfWork, effect: Effect) -> str:
    """The kind and the name of a row, or its id if it has no name."""
    (row,) = uow.get(effect.kind, [effect.key])
    known = getattr(row, "name", None)
    name = known or effect.was.get("name") or effect.became.get("name")
    return describe_row(effect.kind, effect.key, name)


def _named_entries(uow: UnitOfWork, named: str) -> list[JournalEntry]:
    number = named.removeprefix("#")
    if number.isdecimal() and len(number) < LONGEST_NUMBER and int(number):
        found = uow.journal.since(int(number) - 1, limit=1)
        if found and found[0].seq == int(number):
            return uow.journal.of_tx(found[0].tx)
    elif entries := uow.journal.of_tx(named):
        return entries
    elif uow.journal.pruned_to():
        what = f"nothing was written, because {named!r} is not in the journal"
        raise uow.journal.pruned_error(what=what)
    raise NotFound("transaction", named, "`herdbook journal` shows the number of each change")


def _last_entries(uow: UnitOfWork) -> list[JournalEntry]:
    """The entries of the last transaction of who acts that changed anything and was not undone."""
    undone: set[str] = set()
    tried: set[str] = set()
    query = find(JOURNAL, descending=True, limit=PAGE)
    for _ in range(PAGES_SEARCHED):
        page = uow.select(query)
        for entry in page:
            if entry.note and UNDO_NOTE in entry.note:
                undone |= {entry.tx, entry.note.partition(UNDO_NOTE)[2].partition(";")[0]}
            if entry.tx in undone | tried or entry.entity == WORKTREES.name:
                continue
            if _is_own(uow, entry):
                return uow.journal.of_tx(entry.tx)
            tried.add(entry.tx)
        if len(page) < PAGE:
            break
        query = query.next_page(page[-1])
    who = uow.actor.agent or uow.actor.person or "you"
    reason = f"{who} changed nothing lately that could be taken back; name a change of the journal"
    raise NotFound("transaction", "", reason)


def _is_own(uow: UnitOfWork, entry: JournalEntry) -> bool:
    """Whether the acting agent made a change, or, without one, the acting person alone."""
    if uow.actor.agent is not None or entry.agent is not None:
        return entry.agent == uow.actor.agent
    return entry.person == uow.actor.person


def _undo_entries(
    uow: UnitOfWork, entries: Sequence[JournalEntry], tx: str, change_set: ChangeSet | None
) -> list[Effect]:
    """Undo what the entries of a transaction did; returns the effects that were undone."""
    what = repr(tx if change_set is None else change_set.id)
    uow.cause = Cause.REVERT
    found_effects = _effects_of(uow, entries, tx, change_set)
    for effect in found_effects:
        refuse_unrecoverable(effect)
        _refuse_claims(uow, effect)
    saved = _changed_rows(uow, what, found_effects)
    added = _added_rows(uow, found_effects)
    _refuse_cascades(uow, what, saved, added)
    # Rows that were moved under a new row must be moved back before that one is removed. All other
    # new rows are removed first, because they may conflict with the rows to restore.
    _remove_added(uow, added, lambda kind: not _cascading_rows(uow, uow, added, kind))
    _insert_removed(uow, [effect for effect in found_effects if effect.op is Op.REMOVE])
    _save_changed(uow, saved)
    _remove_added(uow, added, lambda _: True)
    since = entries[0].time if change_set is None else change_set.created_at
    _keep_begun(uow, since, saved.get(PHASES, ()))
    uow.reactions.exclude(PHASES, [*_empty_phases(uow), *_settled_phases(uow, tx)])
    return [
        each
        for each in found_effects
        if each.op is Op.REMOVE
        or each.key in (saved if each.op is Op.SAVE else added).get(each.kind, {})
    ]


def _effects_of(
    uow: UnitOfWork, entries: Sequence[JournalEntry], tx: str, change_set: ChangeSet | None
) -> list[Effect]:
    """What the transaction did, but for the change set itself and the sight of a worktree.

    Where somebody worked is written with whatever was done there, and is no part of it.
    """
    if not entries and uow.journal.pruned_to():
        named = tx if change_set is None else f"change set {change_set.id!r}"
        what = f"nothing was written, because {named} cannot be taken back"
        raise uow.journal.pruned_error(what=what)
    if not entries:
        reason = f"the journal of this space does not tell of {tx!r}. Nothing was written"
        raise InvalidValue("tx", reason)
    own = None if change_set is None else (CHANGE_SETS, change_set.id)
    return [
        each
        for each in effects(uow.dictionary, entries)
        if each.kind is not WORKTREES and (each.kind, each.key) != own
    ]


def _refuse_claims(uow: UnitOfWork, effect: Effect) -> None:
    """Raise InvalidValue for a change of a fence: an earlier claim would be valid again."""
    if effect.kind is TASKS and effect.op is Op.SAVE and "fence" in effect.was:
        what = _describe(uow, effect)
        reason = f"{what} was claimed or sent to a review in it. Nothing was written"
        advice = "`herdbook task release` gives a claimed task back"
        raise InvalidValue("tx", f"{reason}; {advice}")


def _changed_rows(uow: UnitOfWork, what: str, found_effects: Iterable[Effect]) -> ByKind:
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
            raise InvalidValue("tx", f"{what} cannot be taken back: {reason}")
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
    removed = plan_removal(read, uow.dictionary, kind, rows).removed
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


def _refuse_cascades(uow: UnitOfWork, what: str, saved: ByKind, added: ByKind) -> None:
    """Raise InvalidValue if removing the added rows would remove others along."""
    view = _RevertedView(uow, saved)
    going = [kind for kind in added if not kind.append_only]
    found = (name for kind in going for name in _cascading_rows(uow, view, added, kind))
    along = list(dict.fromkeys(found))
    if along:
        more = f" and {len(along) - MAX_NAMED_ROWS} more" if len(along) > MAX_NAMED_ROWS else ""
        raise InvalidValue(
            "tx",
            f"{what} cannot be taken back: {', '.join(along[:MAX_NAMED_ROWS])}{more} "
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


def _keep_begun(uow: UnitOfWork, since: datetime, phases: Iterable[str]) -> None:
    """A phase that was finished before is not finished again if a task came into it since."""
    for phase in uow.phases.get_many(phases):
        begun = reopen(phase)
        if begun is phase:
            continue
        left = uow.tasks.select_all(find(TASKS, {"phase_id": phase.id}, limit=PAGE))
        if any(not task.is_finished and task.created_at > since for task in left):
            uow.phases.save(begun)
