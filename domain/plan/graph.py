"""The dependency graph: cycles, a stable order, parallel waves, the critical path.

There is one graph over opaque ids. Nodes that are not items of the call (gates of phases, tasks
from elsewhere) are passed through: what waits for them waits for what they wait for.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from heapq import heapify, heappop, heappush

from attrs import frozen

from herdbook.domain.errors import CycleRefused

Edges = Mapping[str, Collection[str]]
"""Node -> the nodes it waits for."""

SortKey = tuple[int, int, datetime, str]


@frozen(kw_only=True)
class Item:
    """Something to be ordered, with the fields that decide where the graph leaves a choice."""

    id: str
    rank: int
    order: int
    created_at: datetime
    finished: bool = False

    @property
    def sort_key(self) -> SortKey:
        """The order among items that are free at the same time."""
        return (self.rank, self.order, self.created_at, self.id)


@frozen(kw_only=True)
class TaskNode:
    """A task as the graph sees it: its phase and its parent."""

    id: str
    phase_id: str | None = None
    parent_task_id: str | None = None


def plan_edges(
    tasks: Iterable[TaskNode],
    task_dependencies: Iterable[tuple[str, str]],
    phase_dependencies: Iterable[tuple[str, str]],
) -> dict[str, list[str]]:
    """Build the graph of a plan from its tasks and (waiting, waited for) pairs.

    A task waits for its dependencies, a parent for its children, and every task of a phase for
    every task of the phases its phase depends on. The last goes through two nodes per phase,
    `gate:<phase>` and `done:<phase>`, because tasks times tasks would be too many edges.
    """
    edges: defaultdict[str, list[str]] = defaultdict(list)
    gated: set[str] = set()
    awaited: set[str] = set()
    for phase, other in phase_dependencies:
        edges[f"gate:{phase}"].append(f"done:{other}")
        gated.add(phase)
        awaited.add(other)
    for task, other in task_dependencies:
        edges[task].append(other)
    for node in tasks:
        if node.parent_task_id is not None:
            edges[node.parent_task_id].append(node.id)
        if node.phase_id in gated:
            edges[node.id].append(f"gate:{node.phase_id}")
        if node.phase_id in awaited:
            edges[f"done:{node.phase_id}"].append(node.id)
    for phase in gated & awaited:
        # Without a task that leads from done to gate, empty phases could close an undetected cycle.
        edges.setdefault(f"done:{phase}", [f"gate:{phase}"])
    return dict(edges)


def find_cycle(waits_for: Edges) -> tuple[str, ...] | None:
    """Return nodes that wait for one another as (a, b, c, a), or None when there is no cycle.

    The answer depends on the graph alone, not on the order its nodes or edges are listed in.
    """
    _, stuck = _split_by_cycles((), waits_for)
    return _cycle_among(stuck, waits_for) if stuck else None


def topological_order(items: Sequence[Item], waits_for: Edges) -> list[str]:
    """List all items so that each comes after what it waits for, by sort key among free ones.

    Raises CycleRefused when anything in the graph waits for itself.
    """
    blockers, dependents = _count_blockers([item.id for item in items], waits_for)
    keys = {item.id: item.sort_key for item in items}
    # An empty key sorts before every other, so pass-through nodes are released before a choice.
    free = [(keys.get(node, ()), node) for node, count in blockers.items() if not count]
    heapify(free)
    ordered: list[str] = []
    while free:
        key, node = heappop(free)
        if key:
            ordered.append(node)
        for freed in _release(node, blockers, dependents):
            heappush(free, (keys.get(freed, ()), freed))
    stuck = {node for node, count in blockers.items() if count}
    if stuck:
        raise CycleRefused(_cycle_among(stuck, waits_for))
    return ordered


def waves(items: Sequence[Item], waits_for: Edges) -> list[list[str]]:
    """Group the unfinished items into sets that can run at once, the first to run first.

    An item is in the first wave after those of all unfinished items it waits for; each wave is
    sorted by sort key. Raises CycleRefused when anything in the graph waits for itself.
    """
    depth, _ = _longest_chains(items, waits_for)
    result: list[list[str]] = [[] for _ in range(max(depth.values(), default=0))]
    for item in sorted(items, key=lambda item: item.sort_key):
        if not item.finished:
            result[depth[item.id] - 1].append(item.id)
    return result


def critical_path(items: Sequence[Item], waits_for: Edges) -> list[str]:
    """The longest chain of unfinished items, the first to run first.

    Of equally long chains it is the one whose last item sorts first, then its last but one, and so
    on. Raises CycleRefused when anything in the graph waits for itself.
    """
    depth, before = _longest_chains(items, waits_for)
    keys = {item.id: item.sort_key for item in items}
    path: list[str] = []
    node = min(depth, key=lambda node: (-depth[node], keys[node]), default=None)
    while node is not None:
        path.append(node)
        node = before.get(node)
    return path[::-1]


def _longest_chains(
    items: Sequence[Item], waits_for: Edges
) -> tuple[dict[str, int], dict[str, str]]:
    """Measure the longest chain that ends at each unfinished item, and find the item before it."""
    finished = {item.id for item in items if item.finished}
    keys = {item.id: item.sort_key for item in items if not item.finished}
    settled, stuck = _split_by_cycles([item.id for item in items], waits_for)
    if stuck:
        raise CycleRefused(_cycle_among(stuck, waits_for))
    depth: dict[str, int] = {}
    before: dict[str, str] = {}
    tail: dict[str, str] = {}  # per node, the last item of the longest chain that leads through it
    for node in settled:
        if node in finished:
            continue  # nothing waits for it any more, whatever it waited for itself
        tails = [tail[other] for other in waits_for.get(node, ()) if other in tail]
        best = min(tails, key=lambda end: (-depth[end], keys[end]), default=None)
        if node in keys:
            depth[node] = 1 if best is None else depth[best] + 1
            tail[node] = node
            if best is not None:
                before[node] = best
        elif best is not None:
            tail[node] = best
    return depth, before


def _cycle_among(stuck: Collection[str], waits_for: Edges) -> tuple[str, ...]:
    """Walk from the smallest id to the smallest it waits for, until the walk meets itself.

    It must, because every stuck node waits for a stuck node.
    """
    node = min(stuck)
    walked: dict[str, None] = {}
    while node not in walked:
        walked[node] = None
        node = min(other for other in waits_for[node] if other in stuck)
    path = list(walked)
    return (*path[path.index(node) :], node)


def _split_by_cycles(ids: Iterable[str], waits_for: Edges) -> tuple[list[str], set[str]]:
    """Split all nodes into those in topological order and those that are stuck.

    Stuck are the nodes on a cycle and those that wait for one.
    """
    blockers, dependents = _count_blockers(ids, waits_for)
    settled = [node for node, count in blockers.items() if not count]
    for node in settled:  # grows as it goes
        settled.extend(_release(node, blockers, dependents))
    return settled, {node for node, count in blockers.items() if count}


def _count_blockers(
    ids: Iterable[str], waits_for: Edges
) -> tuple[dict[str, int], dict[str, list[str]]]:
    """Count what each node waits for, and list what waits for each node."""
    blockers = dict.fromkeys(ids, 0)
    dependents: dict[str, list[str]] = {}
    for node, others in waits_for.items():
        blockers[node] = len(others)
        for other in others:
            blockers.setdefault(other, 0)
            dependents.setdefault(other, []).append(node)
    return blockers, dependents


def _release(
    node: str, blockers: dict[str, int], dependents: Mapping[str, list[str]]
) -> Iterator[str]:
    """Count `node` as done and yield the nodes that waited for nothing else."""
    for dependent in dependents.get(node, ()):
        blockers[dependent] -= 1
        if not blockers[dependent]:
            yield dependent
