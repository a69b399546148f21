"""What `doctor` reads of the stores of a workspace: without writing, creating or upgrading."""

import os
from datetime import datetime, timedelta
from typing import NamedTuple

from herdbook.domain.errors import HerdbookError
from herdbook.domain.journal import Head, JournalCursor
from herdbook.domain.location.areas import Area
from herdbook.domain.location.resolve import StoreLocation, StoreProbe
from herdbook.entrypoints.context import AppContext
from herdbook.ports.engine.dictionary import CURSORS, JOURNAL, LOG_CHUNKS, OPERATIONS, VERSION
from herdbook.ports.engine.digests import canonical_bytes
from herdbook.ports.engine.query import find
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services.agents import log_bounds

WEEK = timedelta(days=7)
_SAMPLE = 100
"""From how many entries the size of a journal is estimated."""


class SpaceFacts(NamedTuple):
    """The journal of a space, its cursors, and how much it has of what is bounded."""

    now: datetime
    head: Head
    entries: int
    bytes: int
    in_a_week: int
    cursors: list[JournalCursor]
    cursors_over: int
    log_chunks: int
    log_bytes: int
    operations: int


class StoreFacts(NamedTuple):
    """The store of an area; `trouble` is why it, or its space, cannot be read."""

    area: Area
    place: StoreLocation | None
    probe: StoreProbe | None
    space: SpaceFacts | None = None
    trouble: str | None = None


def read_store(app: AppContext, area: Area) -> StoreFacts:
    """Look at the store of an area; what prevents that is `trouble`."""
    place, probe = None, None
    try:
        place = app.workspace.locate(area)
        probe = app.workspace.probe(place, verify=True)
        if probe.problem is not None:
            return StoreFacts(area, place, probe, trouble=probe.problem)
        # Opening a store of an earlier version would upgrade it.
        if not probe.exists or probe.schema_version not in (VERSION, None):
            return StoreFacts(area, place, probe)
        return StoreFacts(area, place, probe, app.read(area, _read_space))
    except (HerdbookError, OSError) as error:
        return StoreFacts(area, place, probe, trouble=str(error))


def _read_space(uow: UnitOfWork) -> SpaceFacts | None:
    head = uow.session.head
    if head is None:
        return None
    entries = head.seq - head.pruned_to
    sample = [len(canonical_bytes(JOURNAL, each)) for each in uow.journal.recent(_SAMPLE)]
    is_work = uow.area is Area.WORK
    live = uow.cursors.live()
    return SpaceFacts(
        now=uow.now,
        head=head,
        entries=entries,
        bytes=sum(sample) * entries // max(1, len(sample)),
        in_a_week=head.seq - _last_before(uow, head, uow.now - WEEK),
        cursors=live,
        cursors_over=uow.count(find(CURSORS)) - len(live),
        log_chunks=uow.count(find(LOG_CHUNKS)) if is_work else 0,
        log_bytes=sum(each.bytes for each in log_bounds.session_sizes(uow)) if is_work else 0,
        operations=uow.count(find(OPERATIONS)),
    )


def _last_before(uow: UnitOfWork, head: Head, moment: datetime) -> int:
    """About the number of the last entry before a time, found by halving."""
    low, high = head.pruned_to, head.seq
    while low < high:
        middle = (low + high + 1) // 2
        entry = uow.journal.find(middle)
        if entry is not None and entry.time < moment:
            low = middle
        else:
            high = middle - 1
    return low


def nearest_folder(path: str | os.PathLike[str]) -> str:
    """The folder itself, or the nearest above it that exists."""
    found = os.path.realpath(path)
    while not os.path.lexists(found) and os.path.dirname(found) != found:  # noqa: PTH120
        found = os.path.dirname(found)  # noqa: PTH120
    return found
