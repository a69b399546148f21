"""Caches the latest checkpoints, valid as long as nobody else writes to their space."""

from collections.abc import Mapping

from herdbook.domain.checkpoints.model import Checkpoint
from herdbook.domain.clock import Stamp
from herdbook.ports.engine.dictionary import CHECKPOINTS
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork

MAX_LANES = 64
"""For how many lanes the last checkpoint is remembered."""

NO_CHECKPOINTS: Mapping[str, Checkpoint] = {}


class LatestCheckpointCache:
    """The last checkpoint that was put through this cache, by lane.

    Every transaction of a space advances its clock, and no two transactions leave the same stamp.
    So what was true at a stamp is true while the clock shows that stamp.
    """

    def __init__(self) -> None:
        # Always replaced as a whole, so that threads need no lock.
        self._known: tuple[Stamp | None, Mapping[str, Checkpoint]] = None, NO_CHECKPOINTS

    def at(self, clock: Stamp | None) -> Mapping[str, Checkpoint]:
        """The known checkpoints of a space whose clock shows this stamp."""
        known, rows = self._known
        return rows if clock is not None and clock == known else NO_CHECKPOINTS

    def remember(self, uow: UnitOfWork, before: Mapping[str, Checkpoint]) -> None:
        """Remember what a committed transaction put; `before` was known until then."""
        put = {
            change.after.lane: change.after
            for change in uow.changes
            if change.kind is CHECKPOINTS and change.after is not None
        }
        if any(change.after is None for change in uow.changes):
            before = NO_CHECKPOINTS
        rows = {**{lane: row for lane, row in before.items() if lane not in put}, **put}
        while len(rows) > MAX_LANES:
            del rows[next(iter(rows))]
        self._known = uow.clock_after_commit, rows
