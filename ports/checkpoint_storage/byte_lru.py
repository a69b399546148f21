"""Thread-safe LRU cache bounded by bytes."""

from collections import OrderedDict
from collections.abc import Hashable, Iterable
from threading import Lock
from typing import Any


class ByteLru:
    """An LRU cache of immutable values, bounded by their total size in bytes.

    Any thread may use it. It must only hold values that never change, so nothing in it can be
    stale.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._used = 0
        self._entries: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._lock = Lock()

    def get_many(self, names: Iterable[Hashable]) -> dict[Any, Any]:
        """The cached values of these keys; missing keys are left out."""
        here = {}
        with self._lock:
            for name in names:
                if name in self._entries:
                    here[name] = self._entries[name][0]
                    self._entries.move_to_end(name)
        return here

    def peek(self, name: Hashable) -> Any:
        """One value, or None; fast, but it does not count as a use."""
        thing = self._entries.get(name)
        return None if thing is None else thing[0]

    def put(self, name: Hashable, thing: Any, size: int) -> None:
        """Add a value of this many bytes, and evict others if there is no room.

        A value larger than half the capacity is not cached.
        """
        if size > self.capacity // 2:
            return
        with self._lock:
            if name not in self._entries:
                self._entries[name] = thing, size
                self._used += size
            while self._used > self.capacity:
                _, (_, gone) = self._entries.popitem(last=False)
                self._used -= gone
