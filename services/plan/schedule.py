"""The schedule of a plan: topological order, waves of tasks that can run at once, critical path.

The scope is a space, an initiative or a phase. Tasks outside the scope that stand between two of
its tasks are passed through, and so is a phase with nothing left to do. Completed tasks and
completed phases are not waited for.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeVar

from herdbook.domain.plan import graph as rules
from herdbook.domain.plan.graph import Item, TaskNode
from herdbook.domain.plan.model import UNFINISHED, PhaseStatus, Task, TaskStatus
from herdbook.ports.engine.dictionary import PHASE_DEPENDENCIES, PHASES, TASK_DEPENDENCIES, TASKS
from herdbook.ports.engine.paging import PAGE, rows_with
from herdbook.ports.engine.query import any_of, find
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork

E = TypeVar("E")


def order(
    uow: UnitOfWork,
    *,
    initiative_id: str | None = None,
    phase_id: str | None = None,
    finished: bool = False,
) -> list[Task]:
    """The unfinished tasks in topological order; independent ones by urgency, most urgent first.

    With `finished`, all tasks, in the order in which they had to be done. Raises NotFound if the
    initiative or phase does not exist.
    """
    asked = _load(uow, initiative_id, phase_id, finished=finished)
    return [asked.tasks[key] for key in rules.topological_order(asked.items, asked.edges)]


def waves(
    uow: UnitOfWork, *, initiative_id: str | None = None, phase_id: str | None = None
) -> list[list[Task]]:
    """The unfinished tasks in sets that can run at once, the first to run first."""
    asked = _load(uow, initiative_id, phase_id)
    return [[asked.tasks[key] for key in wave] for wave in rules.waves(asked.items, asked.edges)]


def critical_path(
    uow: UnitOfWork, *, initiative_id: str | None = None, phase_id: str | None = None
) -> list[Task]:
    """The longest chain of unfinished tasks, the first to run first."""
    asked = _load(uow, initiative_id, phase_id)
    return [asked.tasks[key] for key in rules.critical_path(asked.items, asked.edges)]


def longest_chain(uow: UnitOfWork, tasks: Iterable[Task]) -> list[Task]:
    """The longest chain among these unfinished tasks, the first to run first."""
    asked = _graph_of(uow, tasks)
    return [asked.tasks[key] for key in rules.critical_path(asked.items, asked.edges)]


class Layout(NamedTuple):
    """What a diagram of a plan needs: its waves, its critical path, and the graph with its items.

    Nodes of the graph are tasks, also outside the scope, and `gate:` and `done:` of phases.
    """

    waves: list[list[Task]]
    critical_path: list[Task]
    edges: rules.Edges
    items: list[Item]


def layout(
    uow: UnitOfWork, *, initiative_id: str | None = None, phase_id: str | None = None
) -> Layout:
    """The layout of the unfinished tasks of a scope."""
    asked = _load(uow, initiative_id, phase_id)
    return Layout(
        [[asked.tasks[key] for key in wave] for wave in rules.waves(asked.items, asked.edges)],
        [asked.tasks[key] for key in rules.critical_path(asked.items, asked.edges)],
        asked.edges,
        asked.items,
    )


class _TaskGraph(NamedTuple):
    """The tasks in scope, and the graph around them."""

    tasks: dict[str, Task]
    items: list[Item]
    edges: rules.Edges


def _load(
    uow: UnitOfWork, initiative_id: str | None, phase_id: str | None, *, finished: bool = False
) -> _TaskGraph:
    statuses = tuple(TaskStatus) if finished else UNFINISHED
    return _graph_of(
        uow, _tasks_in_scope(uow, initiative_id, phase_id, statuses), finished=finished
    )


def _graph_of(uow: UnitOfWork, inside: Iterable[Task], *, finished: bool = False) -> _TaskGraph:
    tasks = {task.id: task for task in inside}
    items = [
        Item(
            id=task.id,
            rank=task.priority.rank,
            order=task.order,
            created_at=task.created_at,
            finished=task.is_finished,
        )
        for task in tasks.values()
    ]
    return _TaskGraph(tasks, items, _GraphLoader(uow, finished=finished).around(tasks.values()))


def _tasks_in_scope(
    uow: UnitOfWork,
    initiative_id: str | None,
    phase_id: str | None,
    statuses: tuple[TaskStatus, ...],
) -> Iterator[Task]:
    """The tasks of the scope; a task in a phase belongs to that phase's initiative."""
    if initiative_id is not None:
        uow.initiatives.get(initiative_id)
    if phase_id is not None:
        if initiative_id in (None, uow.phases.get(phase_id).initiative_id):
            yield from _in_phases(uow, [phase_id], statuses)
    elif initiative_id is not None:
        for task in rows_with(uow, TASKS, "initiative_id", [initiative_id]):
            if task.phase_id is None and task.status in statuses:
                yield task
        phases = uow.phases.of_initiative(initiative_id)
        yield from _in_phases(uow, [phase.id for phase in phases], statuses)
    else:
        yield from rows_with(uow, TASKS, "status", statuses)


def _in_phases(
    uow: UnitOfWork, phases: Iterable[str], statuses: tuple[TaskStatus, ...]
) -> Iterator[Task]:
    for phase_id in phases:
        where = {"phase_id": phase_id, "status": any_of(statuses)}
        yield from uow.tasks.select_all(find(TASKS, where, limit=PAGE))


class _GraphLoader:
    """Loads the graph of all that some tasks wait for, one breadth-first step at a time."""

    def __init__(self, uow: UnitOfWork, *, finished: bool) -> None:
        self._uow = uow
        self._finished = finished
        self._statuses = tuple(TaskStatus) if finished else UNFINISHED
        self._tasks: dict[str, Task] = {}
        self._phases: set[str] = set()
        self._ended: set[str] = set()
        self._pairs: list[tuple[str, str]] = []
        self._phase_pairs: list[tuple[str, str]] = []

    def around(self, tasks: Iterable[Task]) -> rules.Edges:
        """The graph of these tasks and of all they wait for, directly or indirectly."""
        fresh = {task.id: task for task in tasks}
        phases: set[str] = set()
        while fresh or phases:
            self._tasks |= fresh
            phases |= {task.phase_id for task in fresh.values() if task.phase_id is not None}
            awaited = self._unfinished_phases(phases)
            found = [*self._prerequisites(list(fresh)), *self._tasks_of_phases(awaited)]
            fresh = {task.id: task for task in found if task.id not in self._tasks}
            phases = awaited - self._phases
        nodes = [
            TaskNode(id=task.id, phase_id=task.phase_id, parent_task_id=task.parent_task_id)
            for task in self._tasks.values()
        ]
        return rules.plan_edges(nodes, self._pairs, self._phase_pairs)

    def _prerequisites(self, tasks: list[str]) -> Iterator[Task]:
        """The children and the dependencies of tasks."""
        children = rows_with(self._uow, TASKS, "parent_task_id", tasks)
        yield from (task for task in children if self._counts(task))
        edges = list(rows_with(self._uow, TASK_DEPENDENCIES, "task_id", tasks))
        ends = self._uow.tasks.get_many(edge.depends_on_task_id for edge in edges)
        # A completed task is not waited for, and neither is what its own children are about.
        counting = [(edge, end) for edge, end in zip(edges, ends, strict=True) if self._counts(end)]
        self._pairs += [(edge.task_id, end.id) for edge, end in counting]
        yield from (end for _, end in counting)

    def _counts(self, task: Task) -> bool:
        return task.status in self._statuses

    def _unfinished_phases(self, phases: set[str]) -> set[str]:
        """The phases that these depend on and that are not completed."""
        fresh = phases - self._phases
        self._phases |= fresh
        edges = list(rows_with(self._uow, PHASE_DEPENDENCIES, "phase_id", sorted(fresh)))
        ends = self._uow.get_existing(PHASES, [edge.depends_on_phase_id for edge in edges])
        pairs = [
            (edge.phase_id, end.id)
            for edge, end in zip(edges, ends, strict=True)
            if self._finished or end.status is not PhaseStatus.COMPLETED
        ]
        self._phase_pairs += pairs
        return {end for _, end in pairs}

    def _tasks_of_phases(self, phases: set[str]) -> Iterator[Task]:
        """The tasks of phases that something waits for, each phase once."""
        fresh = phases - self._ended
        self._ended |= fresh
        return _in_phases(self._uow, sorted(fresh), self._statuses)
