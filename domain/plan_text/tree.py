"""A whole plan as a tree of plain values, the form it has between a text and a store.

`plan_markdown` and `plan_lines` read and write it. An item has a `ref` that no other item of the
plan has: the id it has in a store, or any label. `after` holds the refs of what an item waits for.
The order of the items is the order of the plan. An item whose name is empty is one that the store
has under its ref; it says no more of it than what is not as by default.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Final, NamedTuple

from herdbook.domain.entity import fields_of
from herdbook.domain.plan.model import (
    ExecutionMode,
    Initiative,
    InitiativeStatus,
    Phase,
    PhaseStatus,
    Priority,
    Task,
    TaskCategory,
    TaskStatus,
    TaskType,
)
from herdbook.domain.values import Rule, rule_of

DEEPEST: Final = 100
"""How deep tasks may be nested in one another."""


class TaskText(NamedTuple):
    """A task of a plan, with the tasks it was broken into."""

    name: str
    ref: str
    description: str | None = None
    type: TaskType = TaskType.AUTO
    category: TaskCategory = TaskCategory.EXECUTE
    priority: Priority = Priority.MEDIUM
    status: TaskStatus = TaskStatus.PENDING
    summary: str | None = None
    after: tuple[str, ...] = ()
    tasks: tuple["TaskText", ...] = ()


class PhaseText(NamedTuple):
    """A phase of a plan, with its tasks."""

    name: str
    ref: str
    content: str | None = None
    status: PhaseStatus = PhaseStatus.PENDING
    merge_base: str | None = None
    after: tuple[str, ...] = ()
    tasks: tuple[TaskText, ...] = ()


class InitiativeText(NamedTuple):
    """An initiative of a plan: the tasks that are in none of its phases, and its phases."""

    name: str
    ref: str
    status: InitiativeStatus = InitiativeStatus.ACTIVE
    branch: str | None = None
    execution_mode: ExecutionMode = ExecutionMode.REVIEW_PER_PHASE
    quality_review: bool = False
    tasks: tuple[TaskText, ...] = ()
    phases: tuple[PhaseText, ...] = ()


class PlanText(NamedTuple):
    """A plan: the tasks of no initiative, and the initiatives."""

    tasks: tuple[TaskText, ...] = ()
    initiatives: tuple[InitiativeText, ...] = ()


Item = InitiativeText | PhaseText | TaskText


class Sort(NamedTuple):
    """One of the three sorts of items a plan has."""

    title: str
    entity: type
    made: type[Item]
    prefix: str
    fields: tuple[str, ...]
    may_wait: bool


INITIATIVE: Final = Sort(
    "initiative",
    Initiative,
    InitiativeText,
    "ini_",
    ("name", "status", "branch", "execution_mode", "quality_review"),
    may_wait=False,
)
PHASE: Final = Sort(
    "phase",
    Phase,
    PhaseText,
    "pha_",
    ("name", "content", "status", "merge_base"),
    may_wait=True,
)
TASK: Final = Sort(
    "task",
    Task,
    TaskText,
    "tsk_",
    ("name", "description", "type", "category", "priority", "status", "summary"),
    may_wait=True,
)
SORTS: Final = (INITIATIVE, PHASE, TASK)


def sort_of(item: Item) -> Sort:
    """What sort of item this is."""
    return next(sort for sort in SORTS if isinstance(item, sort.made))


@cache
def rules_of(sort: Sort) -> Mapping[str, Rule]:
    """What the fields of an item may hold: what they may hold in a store."""
    declared = {field.name: field.annotation for field in fields_of(sort.entity)}
    return {name: rule_of(declared[name])[0] for name in sort.fields}


def said_of(item: Item) -> dict[str, object]:
    """The fields of an item that are not as they are by default."""
    values = item._asdict()
    defaults = {"name": "", **item._field_defaults}
    return {name: values[name] for name in sort_of(item).fields if values[name] != defaults[name]}


class Placed(NamedTuple):
    """An item and the one it stands directly under, None for the plan itself."""

    item: Item
    under: Item | None


def walk(plan: PlanText) -> Iterator[Placed]:
    """All items from the first to the last, each before those that stand under it."""
    yield from _walk_tasks(plan.tasks, None)
    for initiative in plan.initiatives:
        yield Placed(initiative, None)
        yield from _walk_tasks(initiative.tasks, initiative)
        for phase in initiative.phases:
            yield Placed(phase, initiative)
            yield from _walk_tasks(phase.tasks, phase)


def _walk_tasks(tasks: tuple[TaskText, ...], under: Item | None) -> Iterator[Placed]:
    # A stack of our own: a generator for every level would hand each task up a hundred times.
    ahead: list[Placed] = [Placed(task, under) for task in reversed(tasks)]
    while ahead:
        placed = ahead.pop()
        yield placed
        ahead += [Placed(task, placed.item) for task in reversed(placed.item.tasks)]
