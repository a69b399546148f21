"""Writes the journal of a transaction: every change, in the total order of the space."""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from herdbook.domain.clock import Stamp, tick
from herdbook.domain.errors import AlreadyExists, StoreDamaged
from herdbook.domain.journal import Head, JournalEntry, Op
from herdbook.ports.engine.codec import construct_unchecked, encode_row
from herdbook.ports.engine.dictionary import HEADS, JOURNAL, new_head
from herdbook.ports.unit_of_work.changes import RowChange

NEGLIGIBLE = timedelta(seconds=1)
"""Up to this difference an entry's stamp is accurate enough as the time of the change."""

LOCAL_PROVENANCE = dict.fromkeys(("cause", "root", "origin", "origin_tx", "parents"))
"""What the entry says of where a change comes from that somebody asked for here."""

if TYPE_CHECKING:
    from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork


def _changed_fields(
    before: Mapping[str, Any], after: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    changed = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    return {n: before.get(n) for n in changed}, {n: after.get(n) for n in changed}


def journal_values(change: RowChange) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    """What the journal stores of a change: the changed fields, or a removed row as a whole.

    Of append-only rows it stores only the key. A secret is masked on both sides, so that a change
    of one shows as a change of `***`.
    """
    kind = change.kind
    before = None if change.before is None else encode_row(kind, change.before)
    after = None if change.after is None else encode_row(kind, change.after)
    if kind.append_only and change.op is not Op.SAVE:
        return None, None
    if before is None or after is None:
        return before, after
    was, becomes = _changed_fields(before, after)
    for name in kind.secrets:
        if vars(change.before)[name] != vars(change.after)[name]:
            was[name], becomes[name] = before.get(name), after.get(name)
    return was, becomes


def append_journal(uow: "UnitOfWork") -> tuple[Head, list[JournalEntry]]:
    """Write the journal entries for a transaction's changes and the new head of the space."""
    head = uow.session.head or new_head(uow.dictionary)
    clock, seq, now, node = uow.clock, head.seq, uow.now, uow.node
    common: dict[str, Any] = {
        "tx": uow.tx,
        "person": uow.actor.person,
        "agent": uow.actor.agent,
        "session": uow.actor.session,
        "worktree": uow.actor.worktree,
        "note": uow.actor.note,
        "operation_id": uow.operation_id,
        "schema_version": uow.dictionary.version,
        "trace_id": uow.actor.trace_id,
        **LOCAL_PROVENANCE,
    }
    entries: list[JournalEntry] = []
    explained: list[tuple[RowChange, JournalEntry]] = []
    for change in uow.changes:
        if not change.kind.journalled:
            continue
        clock, seq = tick(clock, now, node), seq + 1
        common["recorded_at"] = now if abs(clock.wall - now) > NEGLIGIBLE else None
        entry = _entry(common, change, seq, clock)
        entries.append(entry)
        if change.cause is not None or change.provenance is not None:
            explained.append((change, entry))
    if explained:
        _explain(explained, entries)
    if not entries:
        clock = tick(clock, now, node)
    head = construct_unchecked(
        HEADS, {**vars(head), "seq": seq, "clock": clock, **uow.head_changes}
    )
    if entries:
        try:
            uow.session.insert(JOURNAL, entries)
        except AlreadyExists as error:
            # Who writes holds the space and appends behind its head: that head is wrong or lost.
            reason = f"its journal has entries behind its end ({error}): it is damaged, or a copy "
            reason += "that was not finished"
            raise StoreDamaged(uow.space, reason) from error
    if uow.session.head is None:
        uow.session.insert(HEADS, [head])
    else:
        uow.session.replace(HEADS, [head])
    return head, entries


def _entry(common: dict[str, Any], change: RowChange, seq: int, clock: Stamp) -> JournalEntry:
    before, after = journal_values(change)
    values = {
        "seq": seq,
        "at": clock,
        "entity": change.kind.name,
        "key": str(change.key),
        "op": change.op,
        "before": before,
        "after": after,
    }
    return construct_unchecked(JOURNAL, common | values)


def _explain(
    explained: Iterable[tuple[RowChange, JournalEntry]], entries: Iterable[JournalEntry]
) -> None:
    """Add to entries why they were made and where they came from.

    Rows that a cascade removes come before the row that it follows from.
    """
    removals = {(each.entity, each.key): each.at for each in entries if each.op is Op.REMOVE}
    for change, entry in explained:
        values: dict[str, Any] = {"cause": change.cause}
        if change.root is not None:
            kind, key = change.root
            values["root"] = removals.get((kind, str(key)))
        if change.provenance is not None:
            origin, tx, parents = change.provenance
            values |= {"origin": origin, "origin_tx": tx}
            values["parents"] = [str(each) for each in parents] or None
        vars(entry).update(values)
