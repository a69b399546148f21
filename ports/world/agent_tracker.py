"""What a reader tells of an agent-tracker's database: its records, and what it could not read."""

from enum import StrEnum
from typing import Any, NamedTuple


class TrackedKind(StrEnum):
    """What the agent-tracker keeps that has a place in the record."""

    AGENT = "agent"
    COMMIT = "commit"
    COMMUNICATION = "communication"
    RETROSPECTIVE = "retrospective"
    ACTIVITY = "activity"


class Tracked(NamedTuple):
    """One record, with its fields as they were found: nobody has checked them."""

    kind: TrackedKind
    key: str
    fields: dict[str, Any]


class Untold(NamedTuple):
    """A record that could not be read, and why."""

    kind: TrackedKind
    key: str
    reason: str


class Tracker(NamedTuple):
    """All that a database tells."""

    records: tuple[Tracked, ...] = ()
    untold: tuple[Untold, ...] = ()
