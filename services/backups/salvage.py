"""Read from a damaged store what its backup lacks: changes after the last segment."""

from collections.abc import Iterator
from itertools import groupby
from typing import Any

from herdbook.domain.entity import evolve
from herdbook.domain.errors import StoreDamaged
from herdbook.domain.journal import JournalEntry, Op
from herdbook.ports.engine.dictionary import HEADS, JOURNAL
from herdbook.ports.engine.digests import is_content
from herdbook.ports.engine.kinds import Kind
from herdbook.ports.engine.store import Session, Store, SupportsVerify
from herdbook.services.backups.replay import Replay, apply_entries
from herdbook.services.backups.write_backup import unjournalled_kinds
from herdbook.services.stores.space_integrity import readable_pages


def salvage_changes(replay: Replay, damaged: Store, space: str) -> int:
    """Add what a damaged store's journal tells after the end of the backup; how many entries.

    Whole transactions come, in order, until one cannot be read with all its rows. Of rows that the
    journal does not know, those that can be read come too. Raises StoreDamaged if the engine cannot
    safely open its own files, or if the store's journal is another one than the backup's.
    """
    if isinstance(damaged, SupportsVerify):
        damaged.verify()
    head = replay.session.head
    if head is None:
        return 0
    count = 0
    with damaged.transaction(space, write=False) as theirs:
        for entries in _transactions_after(theirs, damaged, replay, head.seq):
            rows = _written_once(theirs, replay, entries)
            if rows is None:
                break
            apply_entries(replay, entries)
            for kind, row in rows:
                replay.session.insert(kind, [row])
            count += len(entries)
            head = evolve(head, seq=entries[-1].seq, clock=entries[-1].at)
        for kind in unjournalled_kinds(replay.dictionary):
            for page in readable_pages(theirs, kind):
                rows_read = [row for row in page if is_content(kind, row)]
                replay.session.delete(kind, [kind.key_of(row) for row in rows_read])
                replay.session.insert(kind, rows_read)
        clock = theirs.head.clock if theirs.head else None
    if clock is not None and head.clock is not None and clock > head.clock:
        head = evolve(head, clock=clock)
    replay.session.replace(HEADS, [head])
    return count


def _transactions_after(
    theirs: Session, damaged: Store, replay: Replay, seq: int
) -> Iterator[list[JournalEntry]]:
    """The transactions after a position that can be read as a whole, without a gap."""
    if theirs.head is not None and theirs.head.pruned_to > seq:
        first = theirs.head.pruned_to + 1
        reason = f"its journal begins at #{first}, and the backup ends at #{seq}"
        raise StoreDamaged(damaged.url, reason)
    own = {}
    following: list[JournalEntry] = []
    for page in readable_pages(theirs, JOURNAL):
        for entry in page:
            if entry.seq == seq:
                own[seq] = entry
            elif entry.seq > seq + len(following):
                if entry.seq != seq + len(following) + 1:
                    break  # an entry between is lost, and what comes after builds on it
                following.append(entry)
    (ours,) = replay.session.get(JOURNAL, [seq])
    if seq in own and own[seq] != ours:
        raise StoreDamaged(damaged.url, f"its journal is another one than the backup's at {seq}")
    groups = [list(group) for _, group in groupby(following, key=lambda entry: entry.tx)]
    last = theirs.head.seq if theirs.head else None
    if groups and groups[-1][-1].seq != last:
        groups.pop()  # where it ends is not known
    yield from groups


def _written_once(
    theirs: Session, replay: Replay, entries: list[JournalEntry]
) -> list[tuple[Kind[Any], Any]] | None:
    """The rows of which these entries have no more than the key; None if one cannot be read."""
    found: list[tuple[Kind[Any], Any]] = []
    for entry in entries:
        kind = replay.dictionary.kinds[entry.entity]
        if not kind.append_only or entry.op is not Op.ADD:
            continue
        try:
            (row,) = theirs.get(kind, [entry.key])
        except StoreDamaged:
            return None
        if row is None:
            return None
        found.append((kind, row))
    return found
