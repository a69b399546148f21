"""What copying and merging ask of the spaces they read and write, and the note a copy leaves.

A copy keeps a note in the space it fills, as an operation that is never pruned and that no digest
counts. While it says `unfinished`, the space is no source of a copy and no target of a merge.
Finished, it keeps the moments at which the space moved house, so that it can be moved back over the
store it once came from, and over no other that has seen work of its own.
"""

from collections.abc import Sequence
from datetime import UTC, datetime

from attrs import asdict, frozen
from attrs import evolve as changed

from herdbook.domain.clock import Stamp, tick
from herdbook.domain.entity import evolve
from herdbook.domain.errors import InvalidValue, NotFound, SpaceRefused, StoreTooNew
from herdbook.domain.journal import Head, OperationResult
from herdbook.ports.engine.dictionary import HEADS, JOURNAL, OPERATIONS
from herdbook.ports.engine.digests import COPY_NOTE, is_content
from herdbook.ports.engine.query import find
from herdbook.ports.engine.store import Session, Store

WORKED_IN = (
    "is an unfinished copy in which somebody has worked; copy into another store, and `merge` "
    "into that one what was done here"
)

_NEVER_PRUNED = datetime(9999, 12, 31, tzinfo=UTC)


@frozen
class Note:
    """What a space says of the copy that filled it.

    `clock` is that of its head when the copy began: an unfinished one of which the head has moved
    since was worked in.
    """

    source: str
    unfinished: bool
    clock: str
    moments: list[str]


def note_of(session: Session) -> Note | None:
    """The note of the copy that filled this space, if one did."""
    (row,) = session.get(OPERATIONS, [COPY_NOTE])
    return None if row is None or row.result is None else Note(**row.result)


def put_note(session: Session, note: Note) -> None:
    """Write the note, over the one that is there."""
    row = OperationResult(operation_id=COPY_NOTE, result=asdict(note), at=_NEVER_PRUNED)
    session.delete(OPERATIONS, [COPY_NOTE])
    session.insert(OPERATIONS, [row])


def spaces_of(source: Store, target: Store, wanted: Sequence[str] | None) -> list[str]:
    """The spaces to bring over: all of the source, or those named, which must be there."""
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
    """Refuse a space that holds a part of what it should."""
    note = note_of(session)
    if note is not None and note.unfinished:
        reason = "is an unfinished copy; copy into it once more first. Nothing was changed"
        raise SpaceRefused(store.url, space, reason)


def accept(session: Session, target: Store, space: str, theirs: Session, source: Store) -> Note:
    """The note to copy under; SpaceRefused where the target has something to lose.

    A space is filled that is empty, that holds an unfinished copy of this source, or that is an
    earlier state of what the source is now.
    """
    head = session.head
    if head is not None and head.oldest_writer > target.dictionary.version:
        raise StoreTooNew(target.url, head.schema_version, target.dictionary.version)
    note = note_of(session)
    if note is not None and note.unfinished:
        if note.source != source.uuid:
            reason = (
                "is an unfinished copy of another store, which is to be finished first. "
                "Nothing was changed"
            )
            raise SpaceRefused(target.url, space, reason)
        if head is None or str(head.clock) != note.clock:
            raise SpaceRefused(target.url, space, f"{WORKED_IN}. Nothing was changed")
        return changed(note, moments=_moments(theirs))
    if head is None or head.clock is None:
        if not is_empty(session, target):
            raise SpaceRefused(
                target.url, space, "has rows but no head; `check` tells more. Nothing was changed"
            )
        clock = str(_begin(session, target))
    elif _is_earlier(session, head, target, theirs, source):
        clock = str(head.clock)
    else:
        reason = (
            "has a history of its own, which a copy would overwrite; `merge` adds what it lacks. "
            "Nothing was changed"
        )
        raise SpaceRefused(target.url, space, reason)
    return Note(source.uuid, unfinished=True, clock=clock, moments=_moments(theirs))


def is_empty(session: Session, target: Store) -> bool:
    """Whether a space has no content at all."""
    # Two, because one of them may be the note.
    first = ((kind, session.select(find(kind, limit=2))) for kind in target.dictionary)
    return not any(is_content(kind, row) for kind, rows in first for row in rows)


def _begin(session: Session, target: Store) -> Stamp:
    """Give an empty space a head, so that it is seen, and seen when somebody works in it."""
    fresh = session.head or Head(
        schema_version=target.dictionary.version, oldest_writer=target.dictionary.oldest_writer
    )
    clock = tick(None, session.now, target.uuid)
    put = session.insert if session.head is None else session.replace
    put(HEADS, [evolve(fresh, clock=clock)])
    return clock


def _moments(theirs: Session) -> list[str]:
    """The moments at which the content was moved: the earlier ones, and this one."""
    note, head = note_of(theirs), theirs.head
    now = [] if head is None else [str(head.clock)]
    return list(dict.fromkeys([*(note.moments if note else []), *now]))


def _is_earlier(
    session: Session, head: Head, target: Store, theirs: Session, source: Store
) -> bool:
    """Whether all that the target has went on in the source.

    Not every change is in the journal: so an equal beginning is enough only where nobody has
    worked in the target since it was filled, or the source was moved from just there.
    """
    now = theirs.head
    if now is None or now.clock is None or head.clock is None or head.seq > now.seq:
        return False
    if str(head.clock) in _moments(theirs):
        return True
    if head.clock.node == target.uuid or head.clock > now.clock:
        return False
    if head.seq == 0:
        note = note_of(session)
        return note is not None and note.source == source.uuid
    return session.get(JOURNAL, [head.seq]) == theirs.get(JOURNAL, [head.seq])
