"""Finds positions in the journal of a space: by number, or by time."""

from datetime import datetime

from herdbook.domain.clock import Stamp
from herdbook.domain.errors import StoreDamaged
from herdbook.domain.journal import Head, JournalEntry, Position
from herdbook.ports.engine.dictionary import JOURNAL
from herdbook.ports.engine.paging import PAGE
from herdbook.ports.engine.query import above, find
from herdbook.ports.engine.store import Session


def find_position(session: Session, at: Position) -> int | None:
    """The last entry of the last whole transaction that is not after a position.

    It is 0 before the first entry of all, and None if the entries were folded by which it could be
    reached. Of a time, entries count that say an earlier one, also where the clock of the machine
    was set back and stamps are ahead of it.
    """
    head = session.head
    if head is None:
        return 0
    seq = min(at, head.seq) if isinstance(at, int) else _last_until(session, head, at)
    if head.pruned_to < seq < head.seq:
        following = _read(session, seq + 1)
        (first,) = session.select(find(JOURNAL, {"tx": following.tx}, limit=1))
        seq = min(seq, first.seq - 1)
    return seq if seq >= head.pruned_to else None


def _last_until(session: Session, head: Head, moment: datetime) -> int:
    low, high = head.pruned_to, head.seq
    while low < high:  # stamps ascend
        middle = (low + high + 1) // 2
        if _read(session, middle).at.wall <= moment:
            low = middle
        else:
            high = middle - 1
    while page := session.select(find(JOURNAL, {"seq": above(low)}, limit=PAGE)):
        earlier = [entry.seq for entry in page if entry.time <= moment]
        if not earlier:
            break
        low = earlier[-1]
    folded = low == head.pruned_to and head.pruned_at is not None and head.pruned_at.wall > moment
    return low - 1 if folded else low


def _read(session: Session, seq: int) -> JournalEntry:
    (entry,) = session.get(JOURNAL, [seq])
    if entry is None:
        raise StoreDamaged(JOURNAL.name, f"entry {seq} is missing")
    return entry


def entry_stamp(session: Session, seq: int) -> Stamp | None:
    """The stamp of a journal entry, also of the last one that was folded; None without one."""
    head = session.head
    if head is not None and seq == head.pruned_to:
        return head.pruned_at
    (entry,) = session.get(JOURNAL, [seq])
    return None if entry is None else entry.at
