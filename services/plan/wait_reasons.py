"""Why no task can be claimed now: what unfinished tasks wait for, and how many are held."""

from collections import Counter
from collections.abc import Iterator

from herdbook.domain.plan.model import Initiative, Phase, PhaseStatus, Task, TaskStatus
from herdbook.domain.plan.readiness import OpeningState, WaitingTask
from herdbook.ports.engine.dictionary import OPENINGS, WAITING
from herdbook.ports.engine.query import Query, any_of, find
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services.plan.board_model import Blocker, gate_blockers

SAMPLE = 100
"""How many waiting tasks are read to find what they wait for; the others are only counted."""
MANY = 5
"""How many tasks a reason names."""
OTHER_TASKS = "for other tasks"
A_PERSON = "for a person, who can use `herdbook task retry`"


def describe_wait(
    uow: UnitOfWork, *, initiative_id: str | None = None, phase_id: str | None = None
) -> str:
    """One sentence that says why no task is ready: how many tasks wait, and for what."""
    reasons, more = _count_reasons(uow, initiative_id, phase_id)
    parts = [f"{_verb(count, 'wait')} {reason}" for reason, count in reasons.most_common()]
    if more:
        parts.append(f"{more} more {'waits' if more == 1 else 'wait'}")
    held, reviews = (
        uow.count(find(OPENINGS, {**_within(initiative_id, phase_id), "state": state}))
        for state in (OpeningState.HELD, OpeningState.READY)
    )
    if held:
        parts.append(f"{held} {'is' if held == 1 else 'are'} held by agents")
    if reviews:
        parts.append(f"{_verb(reviews, 'wait')} for a review by another agent")
    return f"no task is ready: {', '.join(parts) or 'every task is completed, or there is none'}"


def describe_task(uow: UnitOfWork, task: Task) -> str:
    """Why one task cannot be claimed although nobody holds it."""
    if task.is_finished:
        return "it is completed"
    if task.status is TaskStatus.BLOCKED:
        return f"it waits {A_PERSON}"
    before = [*uow.tasks.dependencies(task.id), *uow.tasks.children(task.id)]
    names = [repr(each.name) for each in before if not each.is_finished]
    more = f" and {len(names) - MANY} more" if len(names) > MANY else ""
    gate = _closed_gate(uow, task)
    reasons = [gate] if gate else []
    if names:
        reasons.append(f"for {', '.join(names[:MANY])}{more}")
    return f"it waits {' and '.join(reasons) or OTHER_TASKS}"


def _verb(count: int, verb: str) -> str:
    return f"{count} {verb}s" if count == 1 else f"{count} {verb}"


def _within(initiative_id: str | None, phase_id: str | None) -> dict[str, str]:
    if phase_id is not None:
        return {"phase_id": phase_id}
    return {} if initiative_id is None else {"initiative_id": initiative_id}


def _count_reasons(
    uow: UnitOfWork, initiative_id: str | None, phase_id: str | None
) -> tuple[Counter[str], int]:
    """How many of the sampled tasks wait for the same reason, and how many were not sampled."""
    reasons: Counter[str] = Counter()
    gates: dict[tuple[str | None, str | None], str | None] = {}
    more = 0
    for query in _queries(uow, initiative_id, phase_id):
        rows = uow.select(query)
        tasks = uow.tasks.get_many(row.task_id for row in rows)
        inside = [
            task for task in tasks if task.phase_id or initiative_id in (None, task.initiative_id)
        ]
        if len(inside) == len(rows):  # else it is not known how many of the others are inside
            more += uow.count(query._replace(limit=None)) - len(rows)
        for task in inside:
            gate = (task.phase_id, task.initiative_id)
            if gate not in gates:
                gates[gate] = _closed_gate(uow, task)
            blocked = A_PERSON if task.status is TaskStatus.BLOCKED else OTHER_TASKS
            reasons[gates[gate] or blocked] += 1
    return reasons, more


def _queries(
    uow: UnitOfWork, initiative_id: str | None, phase_id: str | None
) -> Iterator[Query[WaitingTask]]:
    """The waiting tasks of a phase, of an initiative with its tasks without a phase, or all."""
    if phase_id is not None:
        yield find(WAITING, {"phase_id": phase_id}, limit=SAMPLE)
    elif initiative_id is None:
        yield find(WAITING, limit=SAMPLE)
    else:
        phases = [phase.id for phase in uow.phases.of_initiative(initiative_id)]
        if phases:
            yield find(WAITING, {"phase_id": any_of(phases)}, limit=SAMPLE)
        yield find(WAITING, {"phase_id": None}, limit=SAMPLE)


def _closed_gate(uow: UnitOfWork, task: Task) -> str | None:
    """What keeps the phase or the initiative of a task closed; None if both are open."""
    phase: Phase | None = None if task.phase_id is None else uow.phases.get(task.phase_id)
    owner = task.initiative_id if phase is None else phase.initiative_id
    initiative: Initiative | None = None if owner is None else uow.initiatives.get(owner)
    ahead = [] if phase is None else uow.phases.dependencies(phase.id)
    for blocker in gate_blockers(initiative, phase, ahead):
        return _describe_gate(blocker, own=task.phase_id)
    return None


def _describe_gate(blocker: Blocker, own: str | None) -> str:
    name = f"{blocker.kind} {blocker.name!r}"
    if blocker.kind == "initiative":
        return f"for {name} to be active again (it is {blocker.status})"
    if blocker.id != own:
        return f"for {name} to be completed"
    if blocker.status == PhaseStatus.PENDING:
        return f"for {name} to be approved (`herdbook phase approve {blocker.id}`)"
    return f"for {name}, which is {blocker.status}"
