"""The contents of an agent-tracker's database: its records, and what could not be read."""

from enum import StrEnum
from typing import Any, NamedTuple


class TrackedKind(StrEnum):
    """The kinds of the agent-tracker's rows that have a counterpart in the record."""

    AGENT = "agent"
    COMMIT = "commit"
    COMMUNICATION = "communication"
    RETROSPECTIVE = "retrospective"
    ACTIVITY = "activity"


class TrackerRecord(NamedTuple):
    """One record, with its fields as they were found: not validated."""

    kind: TrackedKind
    key: str
    fields: dict[str, Any]


class TrackerReadFailure(NamedTuple):
    """A record that could not be read, and why."""

    kind: TrackedKind
    key: str
    reason: str


class TrackerContents(NamedTuple):
    """Everything read from a database."""

    records: tuple[TrackerRecord, ...] = ()
    failures: tuple[TrackerReadFailure, ...] = ()
