"""A whole plan as a tree of plain values, the form between a text and a store.

`markdown` and `json_lines` read and write it. An item has a `ref` that no other item of the plan
has: its id in a store, or any label. `after` holds the refs of what an item waits for. The order of
the items is the order of the plan. An item with an empty name is one that the store has under its
ref; it states only the fields that differ from their defaults.
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
"""How deep tasks may be nested."""


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
    acceptance: str | None = None
    labels: list[str] | None = None
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
    """An initiative of a plan: its phases, and its tasks that are in none of them."""

    name: str
    ref: str
    status: InitiativeStatus = InitiativeStatus.ACTIVE
    branch: str | None = None
    execution_mode: ExecutionMode = ExecutionMode.REVIEW_PER_PHASE
    quality_review: bool = False
    tasks: tuple[TaskText, ...] = ()
    phases: tuple[PhaseText, ...] = ()


class PlanText(NamedTuple):
    """A plan: the initiatives, and the tasks of no initiative."""

    tasks: tuple[TaskText, ...] = ()
    initiatives: tuple[InitiativeText, ...] = ()


Item = InitiativeText | PhaseText | TaskText


class ItemKind(NamedTuple):
    """One of the three kinds of items a plan has."""

    title: str
    entity: type
    text_class: type[Item]
    prefix: str
    fields: tuple[str, ...]
    may_wait: bool


INITIATIVE: Final = ItemKind(
    "initiative",
    Initiative,
    InitiativeText,
    "ini_",
    ("name", "status", "branch", "execution_mode", "quality_review"),
    may_wait=False,
)
PHASE: Final = ItemKind(
    "phase",
    Phase,
    PhaseText,
    "pha_",
    ("name", "content", "status", "merge_base"),
    may_wait=True,
)
TASK: Final = ItemKind(
    "task",
    Task,
    TaskText,
    "tsk_",
    (
        "name",
        "description",
        "type",
        "category",
        "priority",
        "status",
        "summary",
        "acceptance",
        "labels",
    ),
    may_wait=True,
)
ITEM_KINDS: Final = (INITIATIVE, PHASE, TASK)


def item_kind(item: Item) -> ItemKind:
    """The kind of an item."""
    return next(kind for kind in ITEM_KINDS if isinstance(item, kind.text_class))


@cache
def field_rules(kind: ItemKind) -> Mapping[str, Rule]:
    """The validation rules of an item's fields: those of the stored entity."""
    declared = {field.name: field.annotation for field in fields_of(kind.entity)}
    return {name: rule_of(declared[name])[0] for name in kind.fields}


def non_default_fields(item: Item) -> dict[str, object]:
    """The fields of an item that differ from their defaults."""
    values = item._asdict()
    defaults = {"name": "", **item._field_defaults}
    return {name: values[name] for name in item_kind(item).fields if values[name] != defaults[name]}


class ItemWithParent(NamedTuple):
    """An item and its parent, None for the plan itself."""

    item: Item
    parent: Item | None


def walk_items(plan: PlanText) -> Iterator[ItemWithParent]:
    """All items from the first to the last, each before its children."""
    yield from _walk_tasks(plan.tasks, None)
    for initiative in plan.initiatives:
        yield ItemWithParent(initiative, None)
        yield from _walk_tasks(initiative.tasks, initiative)
        for phase in initiative.phases:
            yield ItemWithParent(phase, initiative)
            yield from _walk_tasks(phase.tasks, phase)


def _walk_tasks(tasks: tuple[TaskText, ...], under: Item | None) -> Iterator[ItemWithParent]:
    # An explicit stack: nested generators would pass each task up through a hundred levels.
    ahead: list[ItemWithParent] = [ItemWithParent(task, under) for task in reversed(tasks)]
    while ahead:
        placed = ahead.pop()
        yield placed
        ahead += [ItemWithParent(task, placed.item) for task in reversed(placed.item.tasks)]
