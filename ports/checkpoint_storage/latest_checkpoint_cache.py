"""The checkpoints that were put last, good for as long as nobody else writes in their space."""

from collections.abc import Mapping

from herdbook.domain.checkpoints.model import Checkpoint
from herdbook.domain.clock import Stamp
from herdbook.ports.engine.dictionary import CHECKPOINTS
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork

MOST = 64
"""Of how many lanes the last checkpoint is remembered."""

NOTHING: Mapping[str, Checkpoint] = {}


class Recent:
    """By lane, the last checkpoint that was put through here.

    Every transaction of a space moves its clock, and nobody else's clock ever shows the same. So
    what was true at a moment is true while the clock stands there.
    """

    def __init__(self) -> None:
        # Always exchanged as a whole, so that threads need no lock.
        self._known: tuple[Stamp | None, Mapping[str, Checkpoint]] = None, NOTHING

    def at(self, clock: Stamp | None) -> Mapping[str, Checkpoint]:
        """What is known of a space whose clock shows this."""
        known, rows = self._known
        return rows if clock is not None and clock == known else NOTHING

    def note(self, uow: UnitOfWork, before: Mapping[str, Checkpoint]) -> None:
        """Remember what a transaction has put that was committed; `before` was known until then."""
        put = {
            change.after.lane: change.after
            for change in uow.changes
            if change.kind is CHECKPOINTS and change.after is not None
        }
        if any(change.after is None for change in uow.changes):
            before = NOTHING
        rows = {**{lane: row for lane, row in before.items() if lane not in put}, **put}
        while len(rows) > MOST:
            del rows[next(iter(rows))]
        self._known = uow.left_at, rows
