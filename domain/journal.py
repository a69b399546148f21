"""The journal of a space, its head, and the stored results of operations."""

from datetime import datetime
from enum import StrEnum

from herdbook.domain.clock import Stamp
from herdbook.domain.entity import default_instance, entity
from herdbook.domain.values import Count, Document, Id, JsonObject, Key, Name


class Op(StrEnum):
    ADD = "add"
    SAVE = "save"
    REMOVE = "remove"


@entity
class Actor:
    """Who made a change, as far as it is known.

    `note` is what a reader of the journal should know about this identity: a name that was taken
    from HERDBOOK_USER, another record than the user's own, a halt that could not be looked up.
    """

    person: Name | None = None
    agent: Name | None = None
    session: Name | None = None
    worktree: Id | None = None
    note: Name | None = None


NOBODY = default_instance(Actor)
LONGEST_NOTE = 300


def join_notes(*notes: str | None) -> str | None:
    """Several notes as one, each once and cut where it gets too long; None if there are none."""
    return "; ".join(dict.fromkeys(filter(None, notes)))[:LONGEST_NOTE] or None


@entity
class JournalEntry:
    """One change of one row, in the total order of its space.

    `at` orders entries and may be ahead of the machine's clock; `recorded_at` is what that clock
    said where the two differ by more than a second, and None otherwise.
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

    @property
    def time(self) -> datetime:
        """When the change was made, by the clock of the machine that made it."""
        return self.recorded_at or self.at.wall


@entity
class Head:
    """The position of a space; read first and written last in every write transaction.

    `oldest_writer` is the oldest schema version whose programs may still write here.
    """

    id: Key = "head"
    schema_version: Count
    oldest_writer: Count
    seq: Count = 0
    clock: Stamp | None = None


@entity
class OperationResult:
    """The answer an operation gave, so that repeating the operation gives the same answer."""

    operation_id: Id
    result: Document | None = None
    at: datetime
