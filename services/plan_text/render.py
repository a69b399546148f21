"""Render the rows of a plan as text."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from herdbook.domain.errors import InvalidValue
from herdbook.domain.plan.model import Initiative, Phase, Task
from herdbook.domain.plan_text.tree import (
    DEEPEST,
    INITIATIVE,
    PHASE,
    TASK,
    InitiativeText,
    ItemKind,
    PhaseText,
    PlanText,
    TaskText,
)
from herdbook.ports.engine.dictionary import (
    INITIATIVES,
    PHASES,
    TASKS,
)
from herdbook.ports.engine.kinds import Kind
from herdbook.ports.engine.paging import rows_with, select_pages
from herdbook.ports.repositories.plan import DependentRows
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork

KINDS: dict[ItemKind, Kind[Any]] = {INITIATIVE: INITIATIVES, PHASE: PHASES, TASK: TASKS}
Edges = dict[str, dict[str, str]]
"""Waiting id -> id it waits for -> id of the dependency row."""


class Rows(NamedTuple):
    """Initiatives and phases by age, and tasks in the order of the plan."""

    initiatives: tuple[Initiative, ...] = ()
    phases: tuple[Phase, ...] = ()
    tasks: tuple[Task, ...] = ()


def all_rows(uow: UnitOfWork) -> Rows:
    """The whole plan of a space."""
    initiatives = [row for page in select_pages(uow, INITIATIVES) for row in page]
    phases = [row for page in select_pages(uow, PHASES) for row in page]
    tasks = [row for page in select_pages(uow, TASKS) for row in page]
    return _sort_rows(initiatives, phases, tasks)


def rows_under(uow: UnitOfWork, initiative_ids: Iterable[str], task_ids: Iterable[str]) -> Rows:
    """These initiatives, and all rows in them and under these tasks."""
    initiatives = uow.initiatives.get_many(initiative_ids)
    owners = [each.id for each in initiatives]
    phases = list(rows_with(uow, PHASES, "initiative_id", owners))
    found = rows_with(uow, TASKS, "initiative_id", owners)
    tasks = {task.id: task for task in found}
    inside = rows_with(uow, TASKS, "phase_id", [each.id for each in phases])
    tasks |= {task.id: task for task in inside}
    frontier = list(dict.fromkeys([*tasks, *task_ids]))
    while frontier:
        children = list(rows_with(uow, TASKS, "parent_task_id", frontier))
        frontier = [task.id for task in children if task.id not in tasks]
        tasks |= {task.id: task for task in children}
    return _sort_rows(initiatives, phases, tasks.values())


def _sort_rows(
    initiatives: Iterable[Initiative], phases: Iterable[Phase], tasks: Iterable[Task]
) -> Rows:
    return Rows(
        tuple(sorted(initiatives, key=lambda row: (row.created_at, row.id))),
        tuple(sorted(phases, key=lambda row: (row.created_at, row.id))),
        tuple(sorted(tasks, key=lambda row: (row.order, row.created_at, row.id))),
    )


def edges_of(uow: UnitOfWork, sort: ItemKind, ids: Iterable[str]) -> Edges:
    """The dependencies of these phases or tasks."""
    waiting: DependentRows[Any, Any] = uow.phases if sort is PHASE else uow.tasks
    edges: Edges = {}
    for edge in rows_with(uow, waiting.edges, waiting.ends[0], ids):
        one, other = (getattr(edge, name) for name in waiting.ends)
        edges.setdefault(one, {})[other] = edge.id
    return edges


Owner = tuple[ItemKind, str] | None


def owner_of(task: Task, known: set[str]) -> Owner:
    """What a task is nested under in a text that has these tasks."""
    if task.parent_task_id is not None and task.parent_task_id in known:
        return TASK, task.parent_task_id
    if task.phase_id is not None:
        return PHASE, task.phase_id
    return None if task.initiative_id is None else (INITIATIVE, task.initiative_id)


def plan_of(rows: Rows, edges: Edges) -> PlanText:
    """The plan text of these rows; raises InvalidValue for tasks nested too deeply."""
    known = {task.id for task in rows.tasks}
    by_owner: dict[Owner, list[Task]] = {}
    for task in rows.tasks:
        by_owner.setdefault(owner_of(task, known), []).append(task)
    phases: dict[str, list[Phase]] = {}
    for phase in rows.phases:
        phases.setdefault(phase.initiative_id, []).append(phase)
    positions = _positions(rows, by_owner, phases)

    def after(key: str) -> tuple[str, ...]:
        last = len(positions)
        return tuple(sorted(edges.get(key, ()), key=lambda each: (positions.get(each, last), each)))

    def tasks(owner: Owner, depth: int = 1) -> tuple[TaskText, ...]:
        inside = by_owner.get(owner, ())
        if inside and depth > DEEPEST:
            raise InvalidValue(
                "plan", f"task {inside[0].id} is nested deeper than {DEEPEST} levels"
            )
        return tuple(
            TaskText(
                **_fields(TASK, row),
                ref=row.id,
                after=after(row.id),
                tasks=tasks((TASK, row.id), depth + 1),
            )
            for row in inside
        )

    return PlanText(
        tasks(None),
        tuple(
            InitiativeText(
                **_fields(INITIATIVE, initiative),
                ref=initiative.id,
                tasks=tasks((INITIATIVE, initiative.id)),
                phases=tuple(
                    PhaseText(
                        **_fields(PHASE, phase),
                        ref=phase.id,
                        after=after(phase.id),
                        tasks=tasks((PHASE, phase.id)),
                    )
                    for phase in phases.get(initiative.id, ())
                ),
            )
            for initiative in rows.initiatives
        ),
    )


def _fields(sort: ItemKind, row: object) -> dict[str, Any]:
    return {name: getattr(row, name) for name in sort.fields}


def _positions(
    rows: Rows, by_owner: dict[Owner, list[Task]], phases: dict[str, list[Phase]]
) -> dict[str, int]:
    """The position of each phase and each task in the text."""
    owners: list[Owner] = [None]
    for initiative in rows.initiatives:
        owners.append((INITIATIVE, initiative.id))
        owners += [(PHASE, phase.id) for phase in phases.get(initiative.id, ())]
    positions: dict[str, int] = {}
    ahead: list[Owner] = owners[::-1]
    while ahead:
        owner = ahead.pop()
        if owner is not None:
            positions[owner[1]] = len(positions)
        ahead += [(TASK, task.id) for task in reversed(by_owner.get(owner, []))]
    return positions
