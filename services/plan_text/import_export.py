"""Import and export whole plans as text."""

from datetime import datetime
from typing import Any, NamedTuple

from herdbook.domain.entity import evolve
from herdbook.domain.errors import CycleRefused
from herdbook.domain.plan.claims import lease_is_over
from herdbook.domain.plan.model import Phase
from herdbook.domain.plan.readiness import OpeningState
from herdbook.domain.plan_text.tree import INITIATIVE, PHASE, TASK, PlanText
from herdbook.ports.engine.dictionary import OPENINGS, PHASES, TASKS
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services.plan_text.matching import MatchedItem, PlanMatch, match_plan
from herdbook.services.plan_text.render import KINDS, Rows, all_rows, edges_of, plan_of, rows_under


class AddedItem(NamedTuple):
    """A new item: its id in the store, and the ref it had in the text."""

    kind: str
    id: str
    name: str
    ref: str


class ChangedItem(NamedTuple):
    """A changed item and the fields in which it changed."""

    kind: str
    id: str
    name: str
    fields: tuple[str, ...]


class SkippedItem(NamedTuple):
    """An item that differs from the text and was left as it is, with the reason."""

    kind: str
    id: str
    name: str
    reason: str


class ImportReport(NamedTuple):
    """The result of an import."""

    added: tuple[AddedItem, ...]
    changed: tuple[ChangedItem, ...]
    left_alone: tuple[SkippedItem, ...]
    unchanged: int


def export_plan(uow: UnitOfWork, initiative_id: str | None = None) -> PlanText:
    """The plan of a space, or of one initiative; raises NotFound if that does not exist."""
    rows = all_rows(uow) if initiative_id is None else rows_under(uow, [initiative_id], ())
    edges = edges_of(uow, PHASE, [phase.id for phase in rows.phases])
    edges |= edges_of(uow, TASK, [task.id for task in rows.tasks])
    return plan_of(rows, edges)


def import_plan(uow: UnitOfWork, plan: PlanText) -> ImportReport:
    """Make the rows of a plan's items as the text has them; nothing is ever removed.

    An item whose ref is the id of a row is that row; any other is new. Raises InvalidValue if an
    item waits for one that exists neither in the text nor in the store, and CycleRefused, with the
    names, if items would wait for one another.
    """
    arrival = match_plan(uow, plan)
    stay = _apply_statuses(uow, arrival)
    try:
        _write(uow, arrival)
    except CycleRefused as error:
        raise CycleRefused(_names(uow, arrival, error.cycle)) from error
    uow.reactions.run()
    return _report(uow, arrival, stay, uow.reactions.saved.get(PHASES.name, {}))


def _apply_statuses(uow: UnitOfWork, arrival: PlanMatch) -> list[SkippedItem]:
    """Apply the statuses of the text as far as the rules allow; returns those not applied."""
    tasks = [each for each in arrival.items if each.sort is TASK and each.before is not None]
    openings = uow.get(OPENINGS, [each.id for each in tasks])
    held = {
        opening.task_id
        for opening in openings
        if opening is not None
        and opening.state is OpeningState.HELD
        and not lease_is_over(opening, uow.now)
    }
    left: list[SkippedItem] = []
    for each in arrival.items:
        reason = each.apply_status(held=each.id in held)
        if reason is not None:
            left.append(SkippedItem(each.sort.title, each.id, each.name, reason))
    return left


def _write(uow: UnitOfWork, arrival: PlanMatch) -> None:
    """Write in an order in which no intermediate state breaks a rule that the end state keeps."""
    for kind, gone in arrival.removed_edges.items():
        uow.remove(kind, gone)
    new = {each.id for each in arrival.items if each.before is None}
    later: list[MatchedItem] = []
    for sort, kind in KINDS.items():
        at_once: list[tuple[MatchedItem, Any]] = []
        for each in arrival.changed_items(sort):
            waits = bool(each.new_owners() & new)
            later += [each] if waits else []
            at_once.append((each, each.without_new_owners() if waits else each.row))
        saved = uow.save(kind, [row for _, row in at_once])
        for (each, _), row in zip(at_once, saved, strict=True):
            each.stored = row
    added = {kind: arrival.new_rows(sort) for sort, kind in KINDS.items()} | arrival.new_edges
    uow.insert_verbatim({kind: each for kind, each in added.items() if each})
    for each in later:
        version = vars(each.stored)["version"]
        uow.save(KINDS[each.sort], [evolve(each.row, version=version)])


def _names(uow: UnitOfWork, arrival: PlanMatch, cycle: tuple[str, ...]) -> tuple[str, ...]:
    names = {each.id: each.name for each in arrival.items}
    for key in cycle:
        if key not in names:
            row = uow.get(TASKS, [key])[0] or uow.get(PHASES, [key])[0]
            names[key] = row.name if row is not None else key
    return tuple(names[key] for key in cycle)


def _report(
    uow: UnitOfWork, arrival: PlanMatch, stay: list[SkippedItem], follow: dict[str, Phase]
) -> ImportReport:
    added: list[AddedItem] = []
    changed: list[ChangedItem] = []
    unchanged = 0
    for each in arrival.items:
        title, name = each.sort.title, each.name
        fields = arrival.changed_fields(each)
        if each.id in follow and "status" not in fields:
            fields += ("status",)
        if each.before is None:
            added.append(AddedItem(title, each.id, name, each.item.ref))
        elif fields:
            changed.append(ChangedItem(title, each.id, name, fields))
        else:
            unchanged += 1
    known = {each.id for each in arrival.items}
    changed += [
        ChangedItem(PHASE.title, key, phase.name, ("status",))
        for key, phase in follow.items()
        if key not in known
    ]
    around = _existing_rows(uow, arrival)
    there = [(PHASE, row.id, row.name) for row in around.phases]
    there += [(TASK, row.id, row.name) for row in around.tasks]
    stay += _out_of_order(arrival)
    missing = [
        SkippedItem(sort.title, key, name, "is not in the text")
        for sort, key, name in there
        if key not in known
    ]
    return ImportReport(tuple(added), tuple(changed), (*stay, *missing), unchanged)


def _out_of_order(arrival: PlanMatch) -> list[SkippedItem]:
    """Initiatives and phases that the text has after younger ones: the store keeps them by age."""
    left: list[SkippedItem] = []
    youngest: dict[object, tuple[datetime, str]] = {}
    for each in arrival.items:
        if each.sort is TASK or each.is_bare:
            continue
        among = each.sort, each.under.id if each.under else None
        age = each.row.created_at, each.id
        if age < youngest.setdefault(among, age):
            reason = f"{each.sort.title}s stay in the order in which they were added"
            left.append(SkippedItem(each.sort.title, each.id, each.name, reason))
        youngest[among] = max(age, youngest[among])
    return left


def _existing_rows(uow: UnitOfWork, arrival: PlanMatch) -> Rows:
    """The stored rows in and under the items of the text that existed before."""
    there = [each for each in arrival.items if each.before is not None and not each.is_bare]
    initiatives = [each.id for each in there if each.sort is INITIATIVE]
    return rows_under(uow, initiatives, [each.id for each in there if each.sort is TASK])
