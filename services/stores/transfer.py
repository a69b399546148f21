"""Preconditions of copying and merging spaces, and the note that a copy leaves in its target.

A copy writes a note into the space it fills, as an operation that is never pruned and that no
digest counts. While the note is `unfinished`, the space cannot be the source of a copy or the
target of a merge. A finished note keeps the stamps at which the content was moved, so that it can
be copied back over the store it came from, and over no other that was written to since.
"""

from collections.abc import Sequence
from datetime import UTC, datetime

from attrs import asdict, frozen
from attrs import evolve as changed

from herdbook.domain.clock import Stamp, tick
from herdbook.domain.entity import evolve
from herdbook.domain.errors import InvalidValue, NotFound, SpaceRefused, StoreTooNew
from herdbook.domain.journal import Head, OperationResult
from herdbook.ports.engine.dictionary import HEADS, JOURNAL, OPERATIONS, new_head
from herdbook.ports.engine.digests import COPY_NOTE, is_content
from herdbook.ports.engine.query import find
from herdbook.ports.engine.store import Session, Store
from herdbook.ports.unit_of_work.positions import entry_stamp

CHANGED_SINCE = (
    "is an unfinished copy in which somebody has worked; copy into another store, and `merge` "
    "into that one what was done here"
)

_NEVER_PRUNED = datetime(9999, 12, 31, tzinfo=UTC)


@frozen
class CopyNote:
    """The note that a copy leaves in the space it fills.

    `clock` is that of the space's head when the copy began: if the head of an unfinished copy has
    another one, the space was written to since.
    """

    source: str
    unfinished: bool
    clock: str
    moments: list[str]


def read_copy_note(session: Session) -> CopyNote | None:
    """The note of the copy that filled this space, if one did."""
    (row,) = session.get(OPERATIONS, [COPY_NOTE])
    return None if row is None or row.result is None else CopyNote(**row.result)


def write_copy_note(session: Session, note: CopyNote) -> None:
    """Write the note, in place of an existing one."""
    row = OperationResult(operation_id=COPY_NOTE, result=asdict(note), at=_NEVER_PRUNED)
    session.delete(OPERATIONS, [COPY_NOTE])
    session.insert(OPERATIONS, [row])


def select_spaces(source: Store, target: Store, wanted: Sequence[str] | None) -> list[str]:
    """The spaces to transfer: all of the source, or the given ones.

    Raises NotFound for a space that the source lacks, and InvalidValue if both stores are the same
    or laid out for different versions.
    """
    if source.uuid == target.uuid or (source.url == target.url != "memory://"):
        raise InvalidValue(
            "target", "is the store that is read, or holds its files; name another one"
        )
    if source.dictionary.version != target.dictionary.version:
        raise InvalidValue("target", "is laid out for another version; open both with one program")
    there = source.spaces()
    for space in wanted or ():
        if space not in there:
            raise NotFound("space", space)
    return there if wanted is None else list(dict.fromkeys(wanted))


def refuse_unfinished(session: Session, store: Store, space: str) -> None:
    """Raise SpaceRefused for a space that is an unfinished copy."""
    note = read_copy_note(session)
    if note is not None and note.unfinished:
        reason = "is an unfinished copy; copy into it once more first. Nothing was changed"
        raise SpaceRefused(store.url, space, reason)


def check_target(
    session: Session, target: Store, space: str, theirs: Session, source: Store
) -> CopyNote:
    """Check that a space may be copied into; returns the note to write.

    It may if it is empty, an unfinished copy of this source, or an earlier state of the source.
    Raises SpaceRefused if a copy would overwrite other content, and StoreTooNew if the space needs
    a newer program.
    """
    head = session.head
    if head is not None and head.oldest_writer > target.dictionary.version:
        raise StoreTooNew(target.url, head.schema_version, target.dictionary.version)
    note = read_copy_note(session)
    if note is not None and note.unfinished:
        if note.source != source.uuid:
            reason = (
                "is an unfinished copy of another store, which is to be finished first. "
                "Nothing was changed"
            )
            raise SpaceRefused(target.url, space, reason)
        if head is None or str(head.clock) != note.clock:
            raise SpaceRefused(target.url, space, f"{CHANGED_SINCE}. Nothing was changed")
        return changed(note, moments=_move_stamps(theirs))
    if head is None or head.clock is None:
        if not is_empty(session, target):
            raise SpaceRefused(
                target.url, space, "has rows but no head; `check` shows more. Nothing was changed"
            )
        clock = str(_create_head(session, target, theirs.head))
    elif _is_earlier(session, head, theirs, source):
        clock = str(head.clock)
    elif theirs.head is not None and head.seq < theirs.head.pruned_to:
        reason = (
            f"ends at #{head.seq}, and the journal of the source begins at "
            f"#{theirs.head.pruned_to + 1}: whether one continues the other cannot be told. Copy "
            "into another store, or `merge`. Nothing was changed"
        )
        raise SpaceRefused(target.url, space, reason)
    else:
        reason = (
            "has a history of its own, which a copy would overwrite; `merge` adds what it lacks. "
            "Nothing was changed"
        )
        raise SpaceRefused(target.url, space, reason)
    return CopyNote(source.uuid, unfinished=True, clock=clock, moments=_move_stamps(theirs))


def is_empty(session: Session, target: Store) -> bool:
    """Whether a space has no content at all."""
    # Two rows, because one of them may be the copy note.
    first = ((kind, session.select(find(kind, limit=2))) for kind in target.dictionary)
    return not any(is_content(kind, row) for kind, rows in first for row in rows)


def _create_head(session: Session, target: Store, theirs: Head | None) -> Stamp:
    """Give an empty space a head, so that it is listed, and writes to it can be noticed.

    Its next entry has the number of the source's first, which the copy brings before anything else.
    """
    fresh = session.head or new_head(target.dictionary)
    clock = tick(None, session.now, target.node)
    put = session.insert if session.head is None else session.replace
    begins = theirs.pruned_to if theirs is not None else 0
    put(HEADS, [evolve(fresh, clock=clock, seq=begins, pruned_to=begins)])
    return clock


def _move_stamps(theirs: Session) -> list[str]:
    """The stamps at which the content was moved: the earlier ones, and the current one."""
    note, head = read_copy_note(theirs), theirs.head
    now = [] if head is None else [str(head.clock)]
    return list(dict.fromkeys([*(note.moments if note else []), *now]))


def _is_earlier(session: Session, head: Head, theirs: Session, source: Store) -> bool:
    """Whether the source contains all that the target has, as an earlier state.

    Not every change is in the journal: an equal beginning is enough only if nobody has written to
    the target since it was filled, or if the source was moved from exactly there.
    """
    now = theirs.head
    if now is None or now.clock is None or head.clock is None or head.seq > now.seq:
        return False
    if str(head.clock) in _move_stamps(theirs):
        return True
    note = read_copy_note(session)
    if note is None or note.clock != str(head.clock) or head.clock > now.clock:
        return False
    if head.seq == 0:
        return note.source == source.uuid
    if head.seq in (head.pruned_to, now.pruned_to):
        stamp = entry_stamp(session, head.seq)
        return stamp is not None and stamp == entry_stamp(theirs, head.seq)
    ours = session.get(JOURNAL, [head.seq])
    return ours != [None] and ours == theirs.get(JOURNAL, [head.seq])
