"""Keeps what was read of the past, for a server that is asked for one position after the other.

What has changed since a position follows from what has changed since another one by the entries in
between. So a step costs as much as it is wide, not as much as it is far back.
"""

import threading
from collections import OrderedDict
from weakref import WeakKeyDictionary

from herdbook.domain.clock import Stamp
from herdbook.ports.engine.store import Session, Store
from herdbook.ports.unit_of_work.past_rows import ChangeReader, PastChanges
from herdbook.ports.unit_of_work.positions import entry_stamp

MOST_SPACES = 8
MOST_POSITIONS = 8
"""How many positions of a space are kept, those that were used last."""
MOST_ROWS = 200_000
"""How many rows all positions of a space hold together, more or less; one position always stays."""


class SpacePositions:
    """The positions of one space that are kept, those that were used last at the end."""

    def __init__(self) -> None:
        self.mutex = threading.Lock()
        self._known: OrderedDict[int, tuple[PastChanges, Stamp | None]] = OrderedDict()

    def find(self, store: Store, session: Session, seq: int) -> PastChanges:
        """What has changed since a position until the session began."""
        reader, head = ChangeReader(session, store.dictionary), session.head
        if head is None:
            return reader.read(seq)
        near = self._nearest(session, seq)
        found = reader.read(seq) if near is None else reader.follow(near, seq)
        kept = self._known.get(seq)
        if kept is None or kept[0].head <= found.head:
            self._known[seq] = found, head.clock
            self._known.move_to_end(seq)
            self._forget()
        return found

    def _nearest(self, session: Session, seq: int) -> PastChanges | None:
        """The known position from which fewest entries lead here; None if now is nearer."""
        head = session.head
        if head is None:
            return None
        nearest, cost = None, head.seq - seq
        for known, stamp in list(self._known.values()):
            if known.seq < head.pruned_to or entry_stamp(session, known.head) != stamp:
                # Its entries were folded, or this is not the journal that it was read from.
                if known.head <= head.seq:
                    del self._known[known.seq]
                continue
            way = abs(known.seq - seq) + head.seq - known.head
            if way < cost or (way == cost == 0):
                nearest, cost = known, way
        return nearest

    def _forget(self) -> None:
        while len(self._known) > 1 and (
            len(self._known) > MOST_POSITIONS
            or sum(each.size for each, _ in self._known.values()) > MOST_ROWS
        ):
            self._known.popitem(last=False)


class PastCache:
    """What was read of the past, by store and space; for many threads."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._stores: WeakKeyDictionary[Store, OrderedDict[str, SpacePositions]] = (
            WeakKeyDictionary()
        )

    def find_changes(self, store: Store, space: str, session: Session, seq: int) -> PastChanges:
        """What has changed in a space since a position; those who ask at once read it once."""
        with self._mutex:
            spaces = self._stores.setdefault(store, OrderedDict())
            positions = spaces.setdefault(space, SpacePositions())
            spaces.move_to_end(space)
            while len(spaces) > MOST_SPACES:
                spaces.popitem(last=False)
        with positions.mutex:
            return positions.find(store, session, seq)
