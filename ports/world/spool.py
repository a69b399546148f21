"""Where hooks leave events until they are in the record, and what is noted about that."""

from collections.abc import Container, Mapping
from typing import Protocol

from herdbook.domain.record.events import HookEvent


class EventBatch(Protocol):
    """The events that one reading of the spool found; they stay in it until they are confirmed."""

    @property
    def events(self) -> list[HookEvent]:
        """The events in the order in which they were written, without their places."""

    def set_aside(self, event_id: str, reason: str) -> None:
        """Keep an event that cannot be applied apart, with the reason."""

    def list_aside(self) -> list[tuple[str, str]]:
        """What is kept apart, lines that are no events included: where it stood, and why."""

    def confirm(self) -> None:
        """Let go of what was read: the record has it.

        Raises StoreUnavailable where the spool cannot be written; then it is read again.
        """


class Spool(Protocol):
    """Events that wait to be flushed.

    Whoever is killed, at whatever instant, loses nothing: the next reading gives the same events
    with the same ids again.
    """

    def take(self) -> EventBatch:
        """Take what the hooks have left so far."""


class FlushNotes(Protocol):
    """What a person should know about flushes: `herdbook doctor` shows it."""

    def note_failure(self, reason: str | None) -> None:
        """Keep why the last flush did not work; None if it did."""

    def note_unlocated(
        self, counts: Mapping[str, int], troubles: Mapping[str, str], understood: Container[str]
    ) -> None:
        """Keep why events of folders went without their project, and drop what is understood.

        `counts` says of how many events, by folder.
        """
