"""The journal: every change, in the transaction that made it, in the total order of the space."""

from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from herdbook.domain.clock import Stamp, tick
from herdbook.domain.journal import Head, JournalEntry, Op
from herdbook.ports.engine.codec import encode, revive
from herdbook.ports.engine.dictionary import HEADS, JOURNAL
from herdbook.ports.unit_of_work.changes import Change

NEGLIGIBLE = timedelta(seconds=1)
"""Up to here an entry's stamp says well enough what time it was."""

if TYPE_CHECKING:
    from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork


def _difference(
    before: Mapping[str, Any], after: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    changed = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    return {n: before.get(n) for n in changed}, {n: after.get(n) for n in changed}


def said_of(change: Change) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    """What the journal tells of a change: the fields that changed, the whole of what went.

    Of append-only rows it tells just the key. A secret is masked on both sides, so that a change
    of one shows as a change of `***`.
    """
    kind = change.kind
    before = None if change.before is None else encode(kind, change.before)
    after = None if change.after is None else encode(kind, change.after)
    if kind.append_only and change.op is not Op.SAVE:
        return None, None
    if before is None or after is None:
        return before, after
    was, becomes = _difference(before, after)
    for name in kind.secrets:
        if vars(change.before)[name] != vars(change.after)[name]:
            was[name], becomes[name] = before.get(name), after.get(name)
    return was, becomes


def write_down(uow: "UnitOfWork") -> tuple[list[JournalEntry], Head]:
    """The entries for a transaction's changes, and the head of the space behind them."""
    head = uow.session.head or Head(
        schema_version=uow.dictionary.version, oldest_writer=uow.dictionary.oldest_writer
    )
    clock, seq, now, node = head.clock, head.seq, uow.now, uow.node
    entries = []
    common: dict[str, Any] = {
        "tx": uow.tx,
        "person": uow.actor.person,
        "agent": uow.actor.agent,
        "session": uow.actor.session,
        "worktree": uow.actor.worktree,
        "note": uow.actor.note,
        "operation_id": uow.operation_id,
        "schema_version": uow.dictionary.version,
    }
    for change in uow.changes:
        if not change.kind.journalled:
            continue
        clock, seq = tick(clock, now, node), seq + 1
        common["recorded_at"] = now if abs(clock.wall - now) > NEGLIGIBLE else None
        entries.append(_entry(common, change, seq, clock))
    if not entries:
        clock = tick(clock, now, node)
    return entries, revive(HEADS, {**vars(head), "seq": seq, "clock": clock})


def _entry(common: dict[str, Any], change: Change, seq: int, clock: Stamp) -> JournalEntry:
    before, after = said_of(change)
    said = {
        "seq": seq,
        "at": clock,
        "entity": change.kind.name,
        "key": str(change.key),
        "op": change.op,
        "before": before,
        "after": after,
    }
    return revive(JOURNAL, common | said)
