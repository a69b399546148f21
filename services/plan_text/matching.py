"""Match the items of a plan text with rows, and compute the rows they are to become."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from herdbook.domain.entity import evolve
from herdbook.domain.errors import InvalidValue
from herdbook.domain.plan.model import Initiative, Phase, PhaseDependency, Task, TaskDependency
from herdbook.domain.plan_text.changes import (
    SortPosition,
    apply_status,
    assign_orders,
    phase_status_refusal,
    task_status_refusal,
)
from herdbook.domain.plan_text.problems import MAX_PROBLEMS
from herdbook.domain.plan_text.tree import (
    PHASE,
    TASK,
    Item,
    ItemKind,
    PhaseText,
    PlanText,
    TaskText,
    item_kind,
    non_default_fields,
    walk_items,
)
from herdbook.ports.engine.dictionary import PHASE_DEPENDENCIES, TASK_DEPENDENCIES
from herdbook.ports.engine.kinds import Kind
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services.plan_text.render import KINDS, edges_of, owner_of

Row = Initiative | Phase | Task
_OWNERS = ("parent_task_id", "phase_id", "initiative_id")
_EDGES: dict[ItemKind, tuple[Kind[Any], type, str, str]] = {
    PHASE: (PHASE_DEPENDENCIES, PhaseDependency, "phase_id", "depends_on_phase_id"),
    TASK: (TASK_DEPENDENCIES, TaskDependency, "task_id", "depends_on_task_id"),
}


class MatchedItem:
    """An item of the text, the row it was before, and the row it is to become."""

    def __init__(
        self, item: Item, under: "MatchedItem | None", key: str, before: Row | None
    ) -> None:
        self.item = item
        self.sort = item_kind(item)
        self.under = under
        self.id = key
        self.before = before
        self.row: Any = before
        self.stored: Any = before
        # An item without a name only refers to its row: fields at their defaults change nothing.
        self.is_bare = not item.name
        self.changes_status = (
            before is not None
            and item.status != before.status
            and (not self.is_bare or "status" in non_default_fields(item))
        )

    @property
    def name(self) -> str:
        """Its name in the text, else in the store."""
        return self.item.name or (self.before.name if self.before is not None else self.id)

    def change(self, **values: object) -> None:
        """Set these values; a row that has them already stays the same object."""
        new = {name: value for name, value in values.items() if getattr(self.row, name) != value}
        if new:
            self.row = evolve(self.row, **new)

    def apply_status(self, *, held: bool) -> str | None:
        """Give an existing row the status of the text; returns the reason if it keeps its own."""
        if not self.changes_status:
            return None
        reason: str | None = None
        if isinstance(self.row, Task) and isinstance(self.item, TaskText):
            reason = task_status_refusal(self.row, self.item.status, held=held)
            if reason is None:
                self.row = apply_status(self.row, self.item.status)
        elif isinstance(self.row, Phase) and isinstance(self.item, PhaseText):
            reason = phase_status_refusal(self.row, self.item.status)
        if reason is not None:
            return f"its status stays {self.row.status}, not {self.item.status}: {reason}"
        self.change(status=self.item.status)
        return None

    def new_owners(self) -> set[str]:
        """The ids of the owners that the row is to have and did not have before."""
        return {
            getattr(self.row, name)
            for name in _OWNERS
            if hasattr(self.row, name) and getattr(self.row, name) != getattr(self.before, name)
        }

    def without_new_owners(self) -> Row:
        """The row as it can be stored while its new owners do not exist yet."""
        stays = [name for name in _OWNERS if hasattr(self.row, name)]
        # A phase must stay in an initiative; a task is stored without any owner meanwhile, so that
        # it waits for none.
        was = {name: getattr(self.before, name) if self.sort is PHASE else None for name in stays}
        row: Row = evolve(self.row, **was)
        return row


class PlanMatch:
    """All items of a text with their rows, and the dependencies to add and to remove."""

    def __init__(self, items: Sequence[MatchedItem]) -> None:
        self.items = items
        self.new_edges: dict[Kind[Any], list[Any]] = {}
        self.removed_edges: dict[Kind[Any], list[str]] = {}
        self.changed_dependencies: set[str] = set()

    def changed_items(self, sort: ItemKind) -> list[MatchedItem]:
        """The items of a sort that existed before and are to change."""
        of_sort = (each for each in self.items if each.sort is sort)
        return [each for each in of_sort if each.before is not None and each.row != each.before]

    def new_rows(self, sort: ItemKind) -> list[Row]:
        """The new rows of a sort."""
        return [each.row for each in self.items if each.sort is sort and each.before is None]

    def changed_fields(self, wanted: MatchedItem) -> tuple[str, ...]:
        """The fields in which an existing item changes, with `after` for its dependencies."""
        if wanted.before is None:
            return ()
        before, after = vars(wanted.before), vars(wanted.row)
        fields = tuple(name for name in before if before[name] != after[name])
        return (*fields, "after") if wanted.id in self.changed_dependencies else fields


def match_plan(uow: UnitOfWork, plan: PlanText) -> PlanMatch:
    """Match all items and compute the rows they are to become, except for their statuses.

    Raises InvalidValue if an item waits for one that does not exist.
    """
    items = _match_items(uow, plan)
    arrival = PlanMatch(items)
    _match_dependencies(uow, arrival)
    numbers = _task_orders(items)
    tasks = {each.id for each in items if each.sort is TASK}
    for age, each in enumerate(items):
        fields = non_default_fields(each.item) if each.is_bare else each.sort.fields
        values: dict[str, Any] = {
            name: getattr(each.item, name) for name in fields if name != "status"
        }
        if each.is_bare:
            each.change(**values)
            continue
        if each.sort is TASK:
            values |= _task_owners(each, tasks) | {"order": numbers[each.id]}
        if each.sort is PHASE and each.under is not None:
            values["initiative_id"] = each.under.id
        if each.before is not None:
            each.change(**values)
            continue
        # Initiatives and phases are ordered by age.
        born = uow.now + timedelta(microseconds=0 if each.sort is TASK else age)
        each.row = each.sort.entity(
            **values, **_stamp(uow, each.id), created_at=born, status=each.item.status
        )
    return arrival


def _stamp(uow: UnitOfWork, key: str) -> dict[str, Any]:
    """The fields the unit of work sets on new rows, except on those of many kinds at once."""
    return {"id": key, "updated_at": uow.now, "version": 1, "worktree_id": uow.actor.worktree}


def _match_items(uow: UnitOfWork, plan: PlanText) -> list[MatchedItem]:
    placed = list(walk_items(plan))
    there: dict[tuple[ItemKind, str], Row] = {}
    for sort, kind in KINDS.items():
        refs = [item.ref for item, _ in placed if isinstance(item, sort.text_class)]
        found = uow.get(kind, refs)
        there |= {(sort, row.id): row for row in found if row is not None}
    by_ref: dict[str, MatchedItem] = {}
    for item, under in placed:
        sort = item_kind(item)
        before = there.get((sort, item.ref))
        named = before is not None or item.ref.startswith(sort.prefix)
        key = item.ref if named else uow.new_id(KINDS[sort])
        by_ref[item.ref] = MatchedItem(item, by_ref[under.ref] if under else None, key, before)
    return list(by_ref.values())


def _task_owners(wanted: MatchedItem, tasks: set[str]) -> dict[str, str | None]:
    """The parent, the phase and the initiative of a task.

    A task that stays in its place keeps all three, and moves along with its parent.
    """
    under, before = wanted.under, wanted.before
    owner = None if under is None else (under.sort, under.id)
    stays = isinstance(before, Task) and owner_of(before, tasks) == owner
    if isinstance(before, Task) and stays:
        above = under.before if under is not None and under.sort is TASK else None
        together = isinstance(above, Task) and all(
            getattr(above, name) == getattr(before, name) for name in _OWNERS[1:]
        )
        if under is None or not together:
            return {name: getattr(before, name) for name in _OWNERS}
    owners: dict[str, str | None] = dict.fromkeys(_OWNERS)
    if under is not None and under.sort is TASK:
        inherited = {name: getattr(under.row, name) for name in _OWNERS[1:]}
        return owners | inherited | {"parent_task_id": under.id}
    if under is not None:
        owners["phase_id" if under.sort is PHASE else "initiative_id"] = under.id
    return owners


def _task_orders(items: Sequence[MatchedItem]) -> dict[str, int]:
    """The `order` of every task: siblings are in the order of the text."""
    tasks = [each for each in items if each.sort is TASK]
    known = {each.id for each in tasks}
    groups: dict[str | None, list[tuple[int, MatchedItem]]] = {}
    for position, each in enumerate(tasks, start=1):
        if each.is_bare:
            continue
        groups.setdefault(each.under.id if each.under else None, []).append((position, each))
    numbers: dict[str, int] = {}
    for group in groups.values():
        places = [_current_position(each, known) for _, each in group]
        found = assign_orders(places, [position for position, _ in group])
        numbers |= {each.id: number for (_, each), number in zip(group, found, strict=True)}
    return numbers


def _current_position(wanted: MatchedItem, tasks: set[str]) -> SortPosition | None:
    """The current position of a task among its siblings; None if it comes from elsewhere."""
    row, under = wanted.before, wanted.under
    if not isinstance(row, Task):
        return None
    owner = None if under is None else (under.sort, under.id)
    return (row.order, row.created_at, row.id) if owner_of(row, tasks) == owner else None


def _match_dependencies(uow: UnitOfWork, arrival: PlanMatch) -> None:
    """Compute new and removed dependencies; raises InvalidValue for one on a missing item."""
    ids = {each.item.ref: each.id for each in arrival.items}
    nowhere = [
        f"{each.sort.title} {each.id} is given without a name"
        for each in arrival.items
        if each.is_bare and each.before is None
    ]
    for sort, (kind, made, source, target) in _EDGES.items():
        items = [each for each in arrival.items if each.sort is sort]
        there = edges_of(uow, sort, [each.id for each in items if each.before is not None])
        outside = [ref for each in items for ref in _after(each.item) if ref not in ids]
        found = zip(outside, uow.get(KINDS[sort], outside), strict=True)
        unknown = {ref for ref, row in found if row is None}
        for each in items:
            wanted = dict.fromkeys(ids.get(ref, ref) for ref in _after(each.item))
            nowhere += [f"{each.name!r} waits for {ref}" for ref in wanted if ref in unknown]
            known = there.get(each.id, {})
            gone = [edge for key, edge in known.items() if key not in wanted and not each.is_bare]
            new = [key for key in wanted if key not in known]
            if gone or new:
                arrival.changed_dependencies.add(each.id)
            arrival.removed_edges.setdefault(kind, []).extend(gone)
            arrival.new_edges.setdefault(kind, []).extend(
                made(
                    **{source: each.id, target: key},
                    **_stamp(uow, uow.new_id(kind)),
                    created_at=uow.now,
                )
                for key in new
            )
    if nowhere:
        reason = "which is neither in the text nor in the store. Nothing was written"
        raise InvalidValue("plan", f"{'; '.join(nowhere[:MAX_PROBLEMS])}, {reason}")


def _after(item: Item) -> tuple[str, ...]:
    return item.after if isinstance(item, PhaseText | TaskText) else ()
