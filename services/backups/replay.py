"""Apply journal entries to the rows of a space, forwards and backwards.

The journal holds the changed fields of a saved row on both sides, and an added or removed row as a
whole. It holds no secrets, and of rows that are written once no more than the key.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from attrs import define, field

from herdbook.domain.entity import evolve
from herdbook.domain.errors import InvalidValue
from herdbook.domain.journal import JournalEntry, Op, Position
from herdbook.domain.rewind import Values, redo_entry, undo_entry
from herdbook.ports.engine.codec import decode_journalled, encode_row
from herdbook.ports.engine.dictionary import CURSORS, HEADS, JOURNAL, OPERATIONS
from herdbook.ports.engine.kinds import Dictionary, Kind
from herdbook.ports.engine.paging import PAGE, select_all, select_pages
from herdbook.ports.engine.query import above, find
from herdbook.ports.engine.store import Session
from herdbook.ports.unit_of_work.positions import entry_stamp, find_position
from herdbook.services.backups.line_format import MaskedKeys
from herdbook.services.backups.write_backup import unjournalled_kinds


@define
class Replay:
    """Changes the rows of a session's space as journal entries say."""

    session: Session
    dictionary: Dictionary
    masked: MaskedKeys = field(factory=dict)

    def forwards(self, entry: JournalEntry) -> None:
        """Make the change of an entry; rows that are written once come and go by other means."""
        if entry.op is Op.REMOVE or not self.dictionary.kinds[entry.entity].append_only:
            self._write(entry, redo_entry)

    def backwards(self, entry: JournalEntry) -> None:
        """Take the change of an entry back.

        Raises InvalidValue for a removed row of which the journal holds no more than the key.
        """
        kind = self.dictionary.kinds[entry.entity]
        if entry.op is Op.REMOVE and kind.append_only:
            raise InvalidValue(
                "at",
                f"{kind.title} {entry.key!r} was removed after it, and the journal holds no more "
                f"than its key: positions from {entry.seq} on can be restored from this copy. "
                "Nothing was written",
            )
        self._write(entry, undo_entry)

    def _write(
        self, entry: JournalEntry, change: Callable[[JournalEntry, Values | None], Values | None]
    ) -> None:
        kind = self.dictionary.kinds[entry.entity]
        held = None
        if entry.op is Op.SAVE:
            (row,) = self.session.get(kind, [entry.key])
            held = None if row is None else encode_row(kind, row, reveal=True)
        values = change(entry, held)
        if values is None:
            self.session.delete(kind, [entry.key])
            return
        row, is_masked = decode_journalled(kind, values)
        if is_masked:
            self.masked.setdefault(kind.name, []).append(entry.key)
        put = self.session.insert if held is None else self.session.replace
        put(kind, [row])


def rewind(replay: Replay, at: Position) -> None:
    """Bring a space back to a position: to the last whole transaction that is not after it.

    Of rows that the journal does not know, those that say a later time of themselves go, and so do
    the results of operations that were taken back. Raises InvalidValue if the position is not in
    the journal or cannot be reached.
    """
    session, head = replay.session, replay.session.head
    if head is None:
        return
    if isinstance(at, int) and at > head.seq:
        raise InvalidValue("at", f"the last position in this backup is {head.seq}")
    seq = find_position(session, at)
    if seq == head.seq:
        return
    stamp = None if seq is None else entry_stamp(session, seq)
    if seq is None or stamp is None:
        first = head.pruned_to or _first_position(session)
        raise InvalidValue("at", f"the first position in this backup is {first}")
    query = find(JOURNAL, {"seq": above(seq)}, descending=True, limit=PAGE)
    entries = list(select_all(session, query))
    for entry in entries:
        replay.backwards(entry)
    session.delete(JOURNAL, [entry.seq for entry in entries])
    session.delete(OPERATIONS, [e.operation_id for e in entries if e.operation_id is not None])
    session.replace(HEADS, [evolve(head, seq=seq, clock=stamp)])
    for kind in unjournalled_kinds(replay.dictionary):
        if kind is CURSORS:
            ahead = [each for each in session.select(find(CURSORS)) if each.seq > seq]
            session.replace(CURSORS, [evolve(each, seq=seq) for each in ahead])
        else:
            _remove_later(session, kind, stamp.wall)


def _first_position(session: Session) -> int:
    """The end of the first transaction."""
    (first,) = session.get(JOURNAL, [1])
    return 1 if first is None else session.count(find(JOURNAL, {"tx": first.tx}))


def _remove_later(session: Session, kind: Kind[Any], moment: datetime) -> None:
    name = next((each for each in ("created_at", "at") if each in kind.columns), None)
    if name is None:
        return
    later: list[Any] = []
    for page in select_pages(session, kind):
        later += [kind.key_of(row) for row in page if getattr(row, name) > moment]
    session.delete(kind, later)


def apply_entries(replay: Replay, entries: Sequence[JournalEntry]) -> None:
    """Make the changes of entries and add them to the journal."""
    for entry in entries:
        replay.forwards(entry)
    replay.session.insert(JOURNAL, entries)
