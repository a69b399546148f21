"""Rows as they were: journal entries taken back, one by one, from the newest down.

An entry of a saved row has the changed fields on both sides; one of an added or removed row has all
of it on one side. Of rows that are written once the journal has no more than the key.
"""

from datetime import datetime
from typing import Any, Final, NamedTuple

from herdbook.domain.errors import StoreDamaged
from herdbook.domain.journal import JournalEntry, Op

Values = dict[str, Any]

NOT_KNOWN: Final = ("leases", "reviewers", "logs", "processes")
"""What no journal tells: it is not known what was true of it at an earlier position."""


class AsOf(NamedTuple):
    """An earlier position: the last entry that counts, 0 before the first, and its time."""

    seq: int
    time: datetime


def undo_entry(entry: JournalEntry, row: Values | None) -> Values | None:
    """The values of a row before a change, from those after it; None if it was not there.

    A removed row that is written once has no values. Raises StoreDamaged if the entry saves a row
    that is not there.
    """
    if entry.op is Op.ADD:
        return None
    if entry.op is Op.REMOVE:
        return dict(entry.before or {})
    return {**_present(entry, row), **(entry.before or {})}


def redo_entry(entry: JournalEntry, row: Values | None) -> Values | None:
    """The values of a row after a change, from those before it; as `undo_entry` otherwise."""
    if entry.op is Op.REMOVE:
        return None
    if entry.op is Op.ADD:
        return dict(entry.after or {})
    return {**_present(entry, row), **(entry.after or {})}


def _present(entry: JournalEntry, row: Values | None) -> Values:
    if row is None:
        reason = f"the journal saves {entry.key!r}, which is not there"
        raise StoreDamaged(entry.entity, reason)
    return row
