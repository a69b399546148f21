"""The journal of a space, its head, its cursors, and the stored results of operations."""

from datetime import datetime
from enum import StrEnum
from typing import Final, NamedTuple

from herdbook.domain.clock import Stamp
from herdbook.domain.entity import VersionedEntity, default_instance, entity
from herdbook.domain.values import Count, Document, Id, JsonObject, Key, Name

Position = int | datetime
"""A position in the journal: the number of an entry, or a time."""


class Op(StrEnum):
    ADD = "add"
    SAVE = "save"
    REMOVE = "remove"


class Cause(StrEnum):
    """Why a row was changed, if not because somebody asked for this very change."""

    CASCADE = "cascade"
    SET_NULL = "set_null"
    REVERT = "revert"
    MERGE = "merge"
    UPGRADE = "upgrade"


class Provenance(NamedTuple):
    """Where a change comes from that another replica made first.

    `origin` is its stamp there, `tx` its transaction, and `parents` the stamps that it replaced.
    """

    origin: Stamp
    tx: str
    parents: tuple[Stamp, ...] = ()


@entity
class Actor:
    """Who made a change, as far as it is known.

    `note` is what a reader of the journal should know about this identity: a name that was taken
    from HERDBOOK_USER, another record than the user's own, a halt that could not be looked up.
    `trace_id` is the trace (W3C trace context) that the change was made in.
    """

    person: Name | None = None
    agent: Name | None = None
    session: Name | None = None
    worktree: Id | None = None
    note: Name | None = None
    trace_id: Id | None = None


NOBODY = default_instance(Actor)
LONGEST_NOTE = 300
UNDO_NOTE = "takes back "
"""Begins the note of a transaction that undoes another, whose id follows."""


def join_notes(*notes: str | None) -> str | None:
    """Several notes as one, each once and cut where it gets too long; None if there are none."""
    return "; ".join(dict.fromkeys(filter(None, notes)))[:LONGEST_NOTE] or None


@entity
class JournalEntry:
    """One change of one row, in the total order of its space.

    `at` orders entries and may be ahead of the machine's clock; `recorded_at` is what that clock
    said where the two differ by more than a second, and None otherwise.

    `cause` says why a row was changed that nobody named, and `root` is the stamp of the entry that
    this follows from: the removal that cascaded or emptied a reference. `origin`, `origin_tx` and
    `parents` are the provenance of a change that another replica made; they are None for a local
    one.
    """

    seq: int
    tx: Id
    at: Stamp
    recorded_at: datetime | None = None
    person: Name | None = None
    agent: Name | None = None
    session: Name | None = None
    worktree: Id | None = None
    note: Name | None = None
    operation_id: Id | None = None
    schema_version: int
    entity: Id
    key: Key
    op: Op
    before: JsonObject | None = None
    after: JsonObject | None = None
    trace_id: Id | None = None
    cause: Cause | None = None
    root: Stamp | None = None
    origin: Stamp | None = None
    origin_tx: Id | None = None
    parents: Document | None = None

    @property
    def time(self) -> datetime:
        """When the change was made, by the clock of the machine that made it."""
        return self.recorded_at or self.at.wall


@entity
class Head:
    """The position of a space; read first and written last in every write transaction.

    `oldest_writer` is the oldest schema version whose programs may still write here. Entries up to
    `pruned_to` were folded and are no longer in the journal; `pruned_at` is the stamp of the last.
    `rows_version` is the schema version whose rules all its rows follow: if it is an older one, the
    first transaction that writes rewrites them.
    """

    id: Key = "head"
    schema_version: Count
    oldest_writer: Count
    seq: Count = 0
    clock: Stamp | None = None
    pruned_to: Count = 0
    pruned_at: Stamp | None = None
    rows_version: Count | None = None


FOLLOWER: Final = "follower/"
"""Begins the names of cursors that are held as long as a process follows the journal."""


@entity
class JournalCursor(VersionedEntity):
    """A reader's position in the journal: it still needs every entry after `seq`.

    Its id is its name. `holder` tells people what reads there. No entry after the position of a
    cursor is folded until the cursor has moved on, was released, or has expired.
    """

    seq: Count
    holder: Name
    expires_at: datetime | None = None

    def is_live(self, now: datetime) -> bool:
        """Whether it has not expired."""
        return self.expires_at is None or self.expires_at > now

    @property
    def is_follower(self) -> bool:
        """Whether a process holds it only while it follows: nothing of it is to be kept."""
        return self.id.startswith(FOLLOWER)


@entity
class OperationResult:
    """The answer an operation gave, so that repeating the operation gives the same answer."""

    operation_id: Id
    result: Document | None = None
    at: datetime
