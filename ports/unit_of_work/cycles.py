"""Refuses dependency cycles when the edge that would close one is written.

All waits-for edges of a space are one graph. A task waits for what it depends on, a parent for its
children, and every task of a phase for all tasks of the phases its phase depends on. A phase is two
nodes: its gate, which its tasks wait for, and its end, which waits for its tasks and, because there
may be none yet, for the gate itself.

Pages, messages and comments hang on a parent of their own kind; none may be its own ancestor.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from herdbook.domain.errors import CycleRefused
from herdbook.domain.plan.graph import find_cycle
from herdbook.domain.plan.model import Phase, PhaseDependency, Task, TaskDependency
from herdbook.ports.engine.dictionary import PHASE_DEPENDENCIES, PHASES, TASK_DEPENDENCIES, TASKS
from herdbook.ports.engine.kinds import Kind
from herdbook.ports.engine.query import any_of, find
from herdbook.ports.engine.store import EdgeMapping, Node, SupportsWalk

if TYPE_CHECKING:
    from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork

TASK, GATE, END = "task", "gate", "end"
BELOW = "be below"
"""What the rows of a cycle in a tree would do to one another."""

EDGE_MAPPINGS = (
    EdgeMapping(TASK_DEPENDENCIES, "task_id", TASK, "depends_on_task_id", TASK),
    EdgeMapping(TASKS, "parent_task_id", TASK, "id", TASK),
    EdgeMapping(TASKS, "id", TASK, "phase_id", GATE),
    EdgeMapping(PHASE_DEPENDENCIES, "phase_id", GATE, "depends_on_phase_id", END),
    EdgeMapping(TASKS, "phase_id", END, "id", TASK),
    EdgeMapping(PHASES, "id", END, "id", GATE),
)
EDGE_KINDS = frozenset(step.kind for step in EDGE_MAPPINGS)
"""The kinds whose rows can close a cycle when they are written."""
Edge = tuple[Node, Node]
Pair = tuple[Any, Any]


def refuse_cycles(uow: "UnitOfWork", pairs: Sequence[Pair]) -> None:
    """Raise CycleRefused if these rows, given as (before, after), would close a cycle."""
    if all(_cannot_close_cycle(before, after) for before, after in pairs):
        return
    new = [edge for before, after in pairs for edge in _new_edges(before, after)]
    if not new:
        return
    edges = _edges_around(uow, new, dropped=_dropped_edges(uow, pairs)) + new
    graph: dict[str, set[str]] = {}
    for source, target in edges:
        graph.setdefault(_label(source), set()).add(_label(target))
    cycle = find_cycle(graph)
    if cycle:
        raise CycleRefused(_readable_cycle(cycle))


@cache
def parent_field(kind: Kind[Any]) -> str | None:
    """The field that names a row's parent in a tree of its kind; None if the graph has it."""
    if kind in EDGE_KINDS:
        return None
    fields = (each.field for each in kind.references if each.target == kind.name)
    return next(fields, None)


def refuse_own_ancestors(uow: "UnitOfWork", kind: Kind[Any], pairs: Sequence[Pair]) -> None:
    """Raise CycleRefused if one of these rows, given as (before, after), becomes its own ancestor.

    Nothing that is stored hangs on a new row, so the ancestors of new rows are looked up only among
    the rows that come with them.
    """
    field = parent_field(kind)
    if field is None:
        return
    parents = {kind.key_of(after): getattr(after, field) for _, after in pairs}
    moved = {
        kind.key_of(after)
        for before, after in pairs
        if before is not None and getattr(before, field) != getattr(after, field)
    }

    def parent_of(key: Any) -> Any:
        if key in parents:
            return parents[key]
        row = uow.get(kind, [key])[0] if moved else None
        return None if row is None else getattr(row, field)

    for key in moved | {kind.key_of(after) for before, after in pairs if before is None}:
        cycle = _find_way_round(key, parent_of)
        if cycle is not None:
            raise CycleRefused(cycle, BELOW)


def own_ancestors(parents: Mapping[Any, Any]) -> Iterator[tuple[Any, tuple[str, ...]]]:
    """The keys that are their own ancestors, each with the cycle, of parents by key."""
    for key in parents:
        cycle = _find_way_round(key, parents.get)
        if cycle is not None:
            yield key, cycle


def _find_way_round(start: Any, parent_of: Callable[[Any], Any]) -> tuple[str, ...] | None:
    """The way from a row up to itself; None if its ancestors end, or go round without it."""
    trail = {start: None}
    key = parent_of(start)
    while key is not None and key not in trail:
        trail[key] = None
        key = parent_of(key)
    return (*map(str, trail), str(start)) if key == start else None


def _label(node: Node) -> str:
    """A node's name in the graph, where phases sort before tasks: a cycle of phases names them."""
    role, key = node
    return f"{role}:{key}"


def _readable_cycle(cycle: tuple[str, ...]) -> tuple[str, ...]:
    """The cycle as people name it: a phase is one thing and is named once."""
    nodes = [tuple(label.split(":", 1)) for label in cycle]
    named = [(role == TASK, key) for role, key in nodes]
    once = [
        key for at, (task, key) in enumerate(named) if task or at == 0 or named[at - 1] != named[at]
    ]
    return tuple(once) if len(once) > 1 else (*once, *once)


def _edges_of_row(row: Any) -> list[Edge]:
    """The edges that a row represents."""
    match row:
        case TaskDependency():
            return [((TASK, row.task_id), (TASK, row.depends_on_task_id))]
        case PhaseDependency():
            return [((GATE, row.phase_id), (END, row.depends_on_phase_id))]
        case Task():
            edges: list[Edge] = []
            if row.parent_task_id:
                edges.append(((TASK, row.parent_task_id), (TASK, row.id)))
            if row.phase_id:
                edges.append(((TASK, row.id), (GATE, row.phase_id)))
                edges.append(((END, row.phase_id), (TASK, row.id)))
            return edges
        case Phase():
            return [((END, row.id), (GATE, row.id))]
        case _:
            return []


def _cannot_close_cycle(before: Any, after: Any) -> bool:
    """Whether only its phase, which does not wait for itself, can wait for the row."""
    if before is not None:
        return False
    return isinstance(after, Phase) or (isinstance(after, Task) and not after.parent_task_id)


def _new_edges(before: Any, after: Any) -> list[Edge]:
    known = set() if before is None else set(_edges_of_row(before))
    return [edge for edge in _edges_of_row(after) if edge not in known]


def _dropped_edges(uow: "UnitOfWork", pairs: Sequence[Pair]) -> set[Edge]:
    """The edges that no longer exist once these rows are saved.

    A parent may also depend on its child: such an edge stays until both rows have dropped it.
    """
    gone = {edge for before, _ in pairs if before is not None for edge in _edges_of_row(before)}
    dropped = gone - {edge for _, after in pairs for edge in _edges_of_row(after)}
    between = [(one, other) for (role, one), (to, other) in dropped if role == to == TASK]
    if not between:
        return dropped
    rows: list[Any] = [*uow.get(TASKS, [other for _, other in between])]
    rows += uow.select(find(TASK_DEPENDENCIES, {"task_id": any_of(one for one, _ in between)}))
    saved = {(type(after), after.id) for _, after in pairs}
    others = [row for row in rows if row is not None and (type(row), row.id) not in saved]
    return dropped - {edge for row in others for edge in _edges_of_row(row)}


def _edges_around(uow: "UnitOfWork", new: Sequence[Edge], dropped: set[Edge]) -> list[Edge]:
    """The stored edges that a cycle through the new ones could use.

    Such a cycle is both in what the new edges' targets wait for and in what waits for their
    sources; where it uses several new edges, they begin and end there too. The side that is
    exhausted first contains all of it, and nothing waits for a new task, so this mostly ends after
    one step.
    """
    ahead = _GraphSearch(uow, {target for _, target in new}, forward=True, dropped=dropped)
    behind = _GraphSearch(uow, {source for source, _ in new}, forward=False, dropped=dropped)
    while ahead.frontier and behind.frontier:
        side = min(ahead, behind, key=lambda each: len(each.frontier))
        if side is ahead and isinstance(uow.session, SupportsWalk) and side.steps_taken:
            side.finish(uow.session)
        else:
            side.advance()
    return ahead.edges if not ahead.frontier else behind.edges


class _GraphSearch:
    """A search through the stored edges in one direction, a step at a time."""

    def __init__(
        self, uow: "UnitOfWork", starts: set[Node], *, forward: bool, dropped: set[Edge]
    ) -> None:
        self.uow = uow
        self.forward = forward
        self.dropped = dropped
        self.frontier = set(starts)
        self.seen = set(starts)
        self.edges: list[Edge] = []
        self.steps_taken = 0

    def advance(self) -> None:
        """Search one step further, with one query per kind of edge."""
        found: list[Edge] = []
        for step in EDGE_MAPPINGS:
            role, field = (
                (step.source_role, step.source) if self.forward else (step.target_role, step.target)
            )
            keys = [key for each, key in self.frontier if each == role]
            if keys:
                found += [_edge(step, row) for row in self._rows(step.kind, field, keys)]
        self._take([edge for edge in found if edge[0][1] and edge[1][1]])
        self.steps_taken += 1

    def finish(self, session: SupportsWalk) -> None:
        """Let the engine search all the way."""
        self._take(session.walk(EDGE_MAPPINGS, sorted(self.frontier)))
        self.frontier = set()

    def _rows(self, kind: Kind[Any], field: str, keys: list[str]) -> list[Any]:
        if field == kind.key:
            return [row for row in self.uow.get(kind, keys) if row is not None]
        return self.uow.select(find(kind, {field: any_of(keys)}))

    def _take(self, found: Sequence[Edge]) -> None:
        found = [edge for edge in found if edge not in self.dropped]
        far = 1 if self.forward else 0
        self.edges += found
        self.frontier = {edge[far] for edge in found} - self.seen
        self.seen |= self.frontier


def _edge(step: EdgeMapping, row: Any) -> Edge:
    return (
        (step.source_role, getattr(row, step.source)),
        (step.target_role, getattr(row, step.target)),
    )
