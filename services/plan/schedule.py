"""In which order the tasks of a plan can be done, which at once, and what takes longest.

A question is about a space, an initiative or a phase. Tasks of elsewhere that stand between two of
its tasks are passed through, and so is a phase with nothing left to do. What is finished is waited
for no longer: a completed task, and a phase that was completed.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, TypeVar

from herdbook.domain.plan import graph as rules
from herdbook.domain.plan.graph import Item, TaskNode
from herdbook.domain.plan.model import PhaseStatus, Task, TaskStatus
from herdbook.ports.engine.dictionary import PHASE_DEPENDENCIES, PHASES, TASK_DEPENDENCIES, TASKS
from herdbook.ports.engine.kinds import Kind
from herdbook.ports.engine.paging import select_all
from herdbook.ports.engine.query import any_of, find
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork

E = TypeVar("E")

PAGE = 1_000
"""How many rows one answer, and how many keys one question carries at most."""
_UNFINISHED = tuple(status for status in TaskStatus if status is not TaskStatus.COMPLETED)


def order(
    uow: UnitOfWork,
    *,
    initiative_id: str | None = None,
    phase_id: str | None = None,
    finished: bool = False,
) -> list[Task]:
    """The unfinished tasks, each after those it waits for, most urgent first where free to choose.

    With `finished`, all tasks, and in the order in which they had to be done. NotFound for an
    initiative or a phase that is not there.
    """
    asked = _ask(uow, initiative_id, phase_id, finished=finished)
    return [asked.tasks[key] for key in rules.topological_order(asked.items, asked.edges)]


def waves(
    uow: UnitOfWork, *, initiative_id: str | None = None, phase_id: str | None = None
) -> list[list[Task]]:
    """The unfinished tasks in sets that can run at once, the first to run first."""
    asked = _ask(uow, initiative_id, phase_id)
    return [[asked.tasks[key] for key in wave] for wave in rules.waves(asked.items, asked.edges)]


def critical_path(
    uow: UnitOfWork, *, initiative_id: str | None = None, phase_id: str | None = None
) -> list[Task]:
    """The longest chain of unfinished tasks, the first to run first."""
    asked = _ask(uow, initiative_id, phase_id)
    return [asked.tasks[key] for key in rules.critical_path(asked.items, asked.edges)]


def longest_chain(uow: UnitOfWork, tasks: Iterable[Task]) -> list[Task]:
    """The longest chain among these unfinished tasks, the first to run first."""
    asked = _about(uow, tasks)
    return [asked.tasks[key] for key in rules.critical_path(asked.items, asked.edges)]


class Layout(NamedTuple):
    """All that a drawing of a plan shows: its waves, its critical path and the graph itself.

    Nodes of the graph are tasks, also of elsewhere, and `gate:` and `done:` of phases.
    """

    waves: list[list[Task]]
    critical_path: list[Task]
    edges: rules.Edges


def layout(
    uow: UnitOfWork, *, initiative_id: str | None = None, phase_id: str | None = None
) -> Layout:
    """The unfinished tasks as they can be drawn."""
    asked = _ask(uow, initiative_id, phase_id)
    return Layout(
        [[asked.tasks[key] for key in wave] for wave in rules.waves(asked.items, asked.edges)],
        [asked.tasks[key] for key in rules.critical_path(asked.items, asked.edges)],
        asked.edges,
    )


class _Asked(NamedTuple):
    """The tasks a question is about, and the graph around them."""

    tasks: dict[str, Task]
    items: list[Item]
    edges: rules.Edges


def _ask(
    uow: UnitOfWork, initiative_id: str | None, phase_id: str | None, *, finished: bool = False
) -> _Asked:
    statuses = tuple(TaskStatus) if finished else _UNFINISHED
    return _about(uow, _inside(uow, initiative_id, phase_id, statuses), finished=finished)


def _about(uow: UnitOfWork, inside: Iterable[Task], *, finished: bool = False) -> _Asked:
    tasks = {task.id: task for task in inside}
    items = [
        Item(
            id=task.id,
            rank=task.priority.rank,
            order=task.order,
            created_at=task.created_at,
            finished=task.finished,
        )
        for task in tasks.values()
    ]
    return _Asked(tasks, items, _Graph(uow, finished=finished).around(tasks.values()))


def _inside(
    uow: UnitOfWork,
    initiative_id: str | None,
    phase_id: str | None,
    statuses: tuple[TaskStatus, ...],
) -> Iterator[Task]:
    """The tasks of what was asked for; a task in a phase is of that phase's initiative."""
    if initiative_id is not None:
        uow.initiatives.get(initiative_id)
    if phase_id is not None:
        if initiative_id in (None, uow.phases.get(phase_id).initiative_id):
            yield from _in_phases(uow, [phase_id], statuses)
    elif initiative_id is not None:
        for task in _every(uow, TASKS, "initiative_id", [initiative_id]):
            if task.phase_id is None and task.status in statuses:
                yield task
        phases = uow.phases.of_initiative(initiative_id)
        yield from _in_phases(uow, [phase.id for phase in phases], statuses)
    else:
        yield from _every(uow, TASKS, "status", statuses)


def _in_phases(
    uow: UnitOfWork, phases: Iterable[str], statuses: tuple[TaskStatus, ...]
) -> Iterator[Task]:
    for phase_id in phases:
        where = {"phase_id": phase_id, "status": any_of(statuses)}
        yield from uow.tasks.select_all(find(TASKS, where, limit=PAGE))


def _every(uow: UnitOfWork, kind: Kind[E], field: str, values: Iterable[Any]) -> Iterator[E]:
    """All rows with one of these values, fetched page by page."""
    wanted = list(dict.fromkeys(values))
    for start in range(0, len(wanted), PAGE):
        query = find(kind, {field: any_of(wanted[start : start + PAGE])}, limit=PAGE)
        yield from select_all(uow, query)


class _Graph:
    """All that some tasks wait for, found a step at a time."""

    def __init__(self, uow: UnitOfWork, *, finished: bool) -> None:
        self._uow = uow
        self._finished = finished
        self._statuses = tuple(TaskStatus) if finished else _UNFINISHED
        self._tasks: dict[str, Task] = {}
        self._phases: set[str] = set()
        self._ended: set[str] = set()
        self._pairs: list[tuple[str, str]] = []
        self._phase_pairs: list[tuple[str, str]] = []

    def around(self, tasks: Iterable[Task]) -> rules.Edges:
        """The graph of these tasks and of everything they wait for, however far."""
        fresh = {task.id: task for task in tasks}
        phases: set[str] = set()
        while fresh or phases:
            self._tasks |= fresh
            phases |= {task.phase_id for task in fresh.values() if task.phase_id is not None}
            awaited = self._awaited_phases(phases)
            found = [*self._awaited_by(list(fresh)), *self._ends(awaited)]
            fresh = {task.id: task for task in found if task.id not in self._tasks}
            phases = awaited - self._phases
        nodes = [
            TaskNode(id=task.id, phase_id=task.phase_id, parent_task_id=task.parent_task_id)
            for task in self._tasks.values()
        ]
        return rules.plan_edges(nodes, self._pairs, self._phase_pairs)

    def _awaited_by(self, tasks: list[str]) -> Iterator[Task]:
        """The children and the dependencies of tasks."""
        children = _every(self._uow, TASKS, "parent_task_id", tasks)
        yield from (task for task in children if self._counts(task))
        edges = list(_every(self._uow, TASK_DEPENDENCIES, "task_id", tasks))
        self._pairs += [(edge.task_id, edge.depends_on_task_id) for edge in edges]
        keys = [edge.depends_on_task_id for edge in edges]
        yield from (task for task in self._uow.tasks.get_many(keys) if self._counts(task))

    def _counts(self, task: Task) -> bool:
        return task.status in self._statuses

    def _awaited_phases(self, phases: set[str]) -> set[str]:
        """The phases that these depend on and that are not over."""
        fresh = phases - self._phases
        self._phases |= fresh
        edges = list(_every(self._uow, PHASE_DEPENDENCIES, "phase_id", sorted(fresh)))
        ends = self._uow.get_existing(PHASES, [edge.depends_on_phase_id for edge in edges])
        pairs = [
            (edge.phase_id, end.id)
            for edge, end in zip(edges, ends, strict=True)
            if self._finished or end.status is not PhaseStatus.COMPLETED
        ]
        self._phase_pairs += pairs
        return {end for _, end in pairs}

    def _ends(self, phases: set[str]) -> Iterator[Task]:
        """The tasks in phases that something waits for."""
        fresh = phases - self._ended
        self._ended |= fresh
        return _in_phases(self._uow, sorted(fresh), self._statuses)
