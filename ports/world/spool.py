"""The spool, in which hooks leave events until they are in the record, and notes on flushes."""

from collections.abc import Container, Mapping
from typing import Protocol

from herdbook.domain.record.events import HookEvent


class EventBatch(Protocol):
    """The events of one read of the spool; they stay in it until they are confirmed."""

    @property
    def events(self) -> list[HookEvent]:
        """The events in the order in which they were written, not yet located."""

    def set_aside(self, event_id: str, reason: str) -> None:
        """Store an event that cannot be applied separately, with the reason."""

    def list_aside(self) -> list[tuple[str, str]]:
        """The origin and the reason of all that was set aside, also of lines that are no events."""

    def confirm(self) -> None:
        """Remove the events of this batch from the spool: the record has them.

        Raises StoreUnavailable if the spool cannot be written; then they are read again.
        """


class Spool(Protocol):
    """Events that wait to be flushed.

    A reader that is killed at any instant loses nothing: the next read gives the same events with
    the same ids.
    """

    def take(self) -> EventBatch:
        """Read the events that hooks have left so far."""


class SpoolTail(Protocol):
    """Reads what hooks append to the spool, as it comes, and leaves it there for the flush."""

    def take(self) -> list[tuple[HookEvent, str | None]]:
        """The events since the last call, at most so many, each with the name of its tool, if any.

        Raises StoreUnavailable if the spool cannot be read for now.
        """


class FlushNotes(Protocol):
    """Notes about flushes for people, shown by `herdbook doctor`."""

    def note_failure(self, reason: str | None) -> None:
        """Store the reason why the last flush failed; None if it succeeded."""

    def note_unlocated(
        self, counts: Mapping[str, int], problems: Mapping[str, str], located: Container[str]
    ) -> None:
        """Store why events of folders have no project, and drop the notes of located folders.

        `counts` has the number of such events, by folder.
        """

    def note_dropped(self, counts: Mapping[str, int]) -> None:
        """Add to the number of commits of each folder that were counted for nobody."""
