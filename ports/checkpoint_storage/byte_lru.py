"""What was read or written last, kept at hand."""

from collections import OrderedDict
from collections.abc import Hashable, Iterable
from threading import Lock
from typing import Any


class Shelf:
    """Things that never change, by name, up to a number of bytes; those used last stay.

    Any thread may use it. It holds nothing that somebody else could have changed meanwhile.
    """

    def __init__(self, room: int) -> None:
        self.room = room
        self._taken = 0
        self._things: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._lock = Lock()

    def found(self, names: Iterable[Hashable]) -> dict[Any, Any]:
        """Those of the named things that are here."""
        here = {}
        with self._lock:
            for name in names:
                if name in self._things:
                    here[name] = self._things[name][0]
                    self._things.move_to_end(name)
        return here

    def glimpse(self, name: Hashable) -> Any:
        """One of the things, or None; quick, but it does not count as used."""
        thing = self._things.get(name)
        return None if thing is None else thing[0]

    def put(self, name: Hashable, thing: Any, size: int) -> None:
        """Remember a thing of this many bytes, and forget others if there is no room."""
        if size > self.room // 2:
            return
        with self._lock:
            if name not in self._things:
                self._things[name] = thing, size
                self._taken += size
            while self._taken > self.room:
                _, (_, gone) = self._things.popitem(last=False)
                self._taken -= gone
