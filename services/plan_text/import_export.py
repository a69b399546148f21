"""Whole plans in and out: the store brought to what a text says, and put into text."""

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
from herdbook.services.plan_text.matching import Arrival, Wanted, arrival_of
from herdbook.services.plan_text.render import KINDS, Rows, all_rows, edges_of, plan_of, rows_under


class Added(NamedTuple):
    """An item that is new, the id it has now and the one it had in the text."""

    kind: str
    id: str
    name: str
    ref: str


class Changed(NamedTuple):
    """An item that is not as it was, and the fields in which it differs."""

    kind: str
    id: str
    name: str
    fields: tuple[str, ...]


class LeftAlone(NamedTuple):
    """Something that is not as the text has it, and why it was left so."""

    kind: str
    id: str
    name: str
    reason: str


class ImportReport(NamedTuple):
    """What an import did."""

    added: tuple[Added, ...]
    changed: tuple[Changed, ...]
    left_alone: tuple[LeftAlone, ...]
    unchanged: int


def export_plan(uow: UnitOfWork, initiative_id: str | None = None) -> PlanText:
    """The whole plan of a space, or one initiative of it; NotFound if there is none such."""
    rows = all_rows(uow) if initiative_id is None else rows_under(uow, [initiative_id], ())
    edges = edges_of(uow, PHASE, [phase.id for phase in rows.phases])
    edges |= edges_of(uow, TASK, [task.id for task in rows.tasks])
    return plan_of(rows, edges)


def import_plan(uow: UnitOfWork, plan: PlanText) -> ImportReport:
    """Bring the store to what a text says of the items that are in it; nothing is ever removed.

    An item whose ref is the id of a row is that row; any other is new. InvalidValue if something
    waits for what is nowhere, CycleRefused, with the names, if things would wait for one another.
    """
    arrival = arrival_of(uow, plan)
    stay = _statuses(uow, arrival)
    try:
        _write(uow, arrival)
    except CycleRefused as error:
        raise CycleRefused(_names(uow, arrival, error.cycle)) from error
    uow.reactions.run()
    return _report(uow, arrival, stay, uow.reactions.saved.get(PHASES.name, {}))


def _statuses(uow: UnitOfWork, arrival: Arrival) -> list[LeftAlone]:
    """Move statuses as far as the rules allow, and tell where they do not."""
    tasks = [each for each in arrival.items if each.sort is TASK and each.before is not None]
    openings = uow.get(OPENINGS, [each.id for each in tasks])
    held = {
        opening.task_id
        for opening in openings
        if opening is not None
        and opening.state is OpeningState.HELD
        and not lease_is_over(opening, uow.now)
    }
    left: list[LeftAlone] = []
    for each in arrival.items:
        reason = each.restate(held=each.id in held)
        if reason is not None:
            left.append(LeftAlone(each.sort.title, each.id, each.name, reason))
    return left


def _write(uow: UnitOfWork, arrival: Arrival) -> None:
    """Write it in an order in which nothing is ever in the way that would be gone at the end."""
    for kind, gone in arrival.edges_gone.items():
        if gone:
            uow.remove(kind, gone)
    new = {each.id for each in arrival.items if each.before is None}
    later: list[Wanted] = []
    for sort, kind in KINDS.items():
        at_once: list[tuple[Wanted, Any]] = []
        for each in arrival.changed(sort):
            waits = bool(each.owners() & new)
            later += [each] if waits else []
            at_once.append((each, each.detached() if waits else each.row))
        rows = [row for _, row in at_once]
        saved = uow.save(kind, rows) if rows else []
        for (each, _), row in zip(at_once, saved, strict=True):
            each.stored = row
    added = {kind: arrival.added(sort) for sort, kind in KINDS.items()} | arrival.edges_new
    uow.adopt({kind: each for kind, each in added.items() if each})
    for each in later:
        version = vars(each.stored)["version"]
        uow.save(KINDS[each.sort], [evolve(each.row, version=version)])


def _names(uow: UnitOfWork, arrival: Arrival, cycle: tuple[str, ...]) -> tuple[str, ...]:
    names = {each.id: each.name for each in arrival.items}
    for key in cycle:
        if key not in names:
            row = uow.get(TASKS, [key])[0] or uow.get(PHASES, [key])[0]
            names[key] = row.name if row is not None else key
    return tuple(names[key] for key in cycle)


def _report(
    uow: UnitOfWork, arrival: Arrival, stay: list[LeftAlone], follow: dict[str, Phase]
) -> ImportReport:
    added: list[Added] = []
    changed: list[Changed] = []
    unchanged = 0
    for each in arrival.items:
        title, name = each.sort.title, each.name
        fields = arrival.fields_changed(each)
        if each.id in follow and "status" not in fields:
            fields += ("status",)
        if each.before is None:
            added.append(Added(title, each.id, name, each.item.ref))
        elif fields:
            changed.append(Changed(title, each.id, name, fields))
        else:
            unchanged += 1
    known = {each.id for each in arrival.items}
    changed += [
        Changed(PHASE.title, key, phase.name, ("status",))
        for key, phase in follow.items()
        if key not in known
    ]
    around = _around(uow, arrival)
    there = [(PHASE, row.id, row.name) for row in around.phases]
    there += [(TASK, row.id, row.name) for row in around.tasks]
    stay += _out_of_order(arrival)
    missing = [
        LeftAlone(sort.title, key, name, "is not in the text")
        for sort, key, name in there
        if key not in known
    ]
    return ImportReport(tuple(added), tuple(changed), (*stay, *missing), unchanged)


def _out_of_order(arrival: Arrival) -> list[LeftAlone]:
    """Initiatives and phases that the text has behind younger ones: they are kept by age."""
    left: list[LeftAlone] = []
    youngest: dict[object, tuple[datetime, str]] = {}
    for each in arrival.items:
        if each.sort is TASK or each.is_bare:
            continue
        among = each.sort, each.under.id if each.under else None
        age = each.row.created_at, each.id
        if age < youngest.setdefault(among, age):
            reason = f"{each.sort.title}s stay in the order in which they were added"
            left.append(LeftAlone(each.sort.title, each.id, each.name, reason))
        youngest[among] = max(age, youngest[among])
    return left


def _around(uow: UnitOfWork, arrival: Arrival) -> Rows:
    """What there is in and under the items that were there and are told in the text."""
    there = [each for each in arrival.items if each.before is not None and not each.is_bare]
    initiatives = [each.id for each in there if each.sort is INITIATIVE]
    return rows_under(uow, initiatives, [each.id for each in there if each.sort is TASK])
