"""What `doctor` answers, for programs."""

from typing import TypedDict

from herdbook.adapters.user_state.flush_notes import DroppedNote, UnlocatedNote
from herdbook.adapters.user_state.spool import RejectedLine
from herdbook.entrypoints.operations.backups.last_backups import BackupState
from herdbook.entrypoints.operations.doctor.check_result import Health
from herdbook.entrypoints.server_numbers import ServerNumbers


class CheckResultAnswer(TypedDict):
    """What one check found: `ok`, `warning` or `problem`, a sentence, and what to do."""

    check: str
    health: Health
    says: str
    advice: str | None


class WaitingEvents(TypedDict):
    """What waits in the spool, since so many seconds after 1970."""

    events: int
    bytes: int
    since: float | None


class RecordPlace(TypedDict):
    """Where the record is, and why it cannot be read."""

    url: str | None
    trouble: str | None


class MergedDatabase(TypedDict):
    """What came of another program's database, also as a sentence (`told`)."""

    source: str
    changed_at: int
    added: int
    failed: int
    trouble: str | None
    reasons: list[str]
    needs_words: bool
    told: str


class ClockAhead(TypedDict):
    """A space whose journal is ahead of this machine's clock."""

    space: str
    seconds: float


class JournalAnswer(TypedDict):
    """How long and how large a journal is, and who has read least of it."""

    area: str
    space: str
    entries: int
    first: int
    bytes: int
    entries_in_a_week: int
    oldest_cursor: str | None


class StoreAnswer(TypedDict):
    """The store of an area; what is not known of it is null."""

    area: str
    engine: str | None
    url: str | None
    exists: bool | None
    bytes: int | None
    schema_version: int | None
    trouble: str | None
    head: int | None
    cursor_behind: int | None


class DoctorDetails(TypedDict):
    """What the checks looked at, as far as it can be read."""

    spool: str
    waiting: WaitingEvents
    last_failure: str | None
    store: RecordPlace
    aside: list[RejectedLine]
    without_project: list[UnlocatedNote]
    dropped: list[DroppedNote]
    halted: list[str]
    enforce_halt: bool | None
    merged: list[MergedDatabase]
    log: list[str]
    clocks_ahead: list[ClockAhead]
    journals: list[JournalAnswer]
    backups: BackupState | None
    stores: list[StoreAnswer]
    server: ServerNumbers | None


class DoctorAnswer(DoctorDetails):
    """All results, and `ok` unless one of them is a problem."""

    ok: bool
    checks: list[CheckResultAnswer]
