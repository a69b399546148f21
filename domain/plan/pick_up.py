"""In which order so many agents would pick up the tasks of a plan.

It is a drawing aid and no schedule: every task takes one step, everybody works on, and nothing is
added. What waits for a person (a phase to be approved, a blocked task) is not picked up, nor is
what waits for that.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush

from attrs import frozen

from herdbook.domain.errors import InvalidValue
from herdbook.domain.plan.graph import Edges, Item, SortKey

MOST_AGENTS = 1_000


@frozen
class PickUpOrder:
    """The steps, each with the tasks that are worked on in it, the first to be picked up first.

    `next` is what a claim would give at this moment. `stuck` are the tasks that nobody picks up
    before a person has done something. `frees` has, for each task, what waits for nothing else.
    """

    next: str | None
    steps: tuple[tuple[str, ...], ...]
    stuck: tuple[str, ...]
    frees: dict[str, tuple[str, ...]]


def pick_up_order(
    items: Sequence[Item],
    waits_for: Edges,
    agents: int,
    *,
    held: Collection[str] = (),
    closed: Collection[str] = (),
) -> PickUpOrder:
    """Let so many agents work on the unfinished items; those `held` are begun, `closed` never are.

    A free agent takes the item that sorts first among those that wait for nothing, as a claim does.
    Raises InvalidValue for no agents, and for more than there may be.
    """
    if not 0 < agents <= MOST_AGENTS:
        raise InvalidValue("agents", f"must be from 1 to {MOST_AGENTS}")
    keys = {item.id: item.sort_key for item in items if not item.finished}
    ahead = {key: _items_ahead(key, waits_for, keys) for key in keys}
    behind: dict[str, list[str]] = {key: [] for key in keys}
    for key, others in ahead.items():
        for other in others:
            behind[other].append(key)
    left = {key: len(others) for key, others in ahead.items()}
    frees = {
        key: tuple(sorted((each for each in behind[key] if left[each] == 1), key=keys.__getitem__))
        for key in keys
    }
    claimable = [key for key in keys if not left[key] and key not in held and key not in closed]
    waiting = _Waiting(keys, left, behind, closed)
    running = sorted((key for key in held if key in keys), key=keys.__getitem__)
    steps: list[tuple[str, ...]] = []
    while running := waiting.fill(running, agents):
        steps.append(tuple(running))
        waiting.finish(running)
        running = []
    begun = {key for step in steps for key in step}
    stuck = sorted(keys.keys() - begun, key=keys.__getitem__)
    first = min(claimable, key=keys.__getitem__, default=None)
    return PickUpOrder(first, tuple(steps), tuple(stuck), frees)


class _Waiting:
    """The items that wait, by how many others each waits for."""

    def __init__(
        self,
        keys: Mapping[str, SortKey],
        left: dict[str, int],
        behind: Mapping[str, Sequence[str]],
        closed: Collection[str],
    ) -> None:
        self._keys, self._left, self._behind = keys, left, behind
        self._closed = closed
        self._free = [(keys[key], key) for key in keys if not left[key]]
        heapify(self._free)
        self._begun: set[str] = set()

    def fill(self, running: list[str], agents: int) -> list[str]:
        """What runs, and what the free agents take besides."""
        self._begun |= set(running)
        while self._free and len(running) < agents:
            key = heappop(self._free)[1]
            if key not in self._closed and key not in self._begun:
                self._begun.add(key)
                running.append(key)
        return running

    def finish(self, done: Iterable[str]) -> None:
        """Count items as done; what waited for nothing else is free."""
        for key in done:
            for other in self._behind[key]:
                self._left[other] -= 1
                if not self._left[other]:
                    heappush(self._free, (self._keys[other], other))


def _items_ahead(node: str, waits_for: Edges, items: Collection[str]) -> set[str]:
    """The items that a node waits for, directly or through nodes that are none."""
    found: set[str] = set()
    seen = {node}
    left = [node]
    while left:
        for other in waits_for.get(left.pop(), ()):
            if other in items:
                found.add(other)
            elif other not in seen:
                seen.add(other)
                left.append(other)
    found.discard(node)
    return found
