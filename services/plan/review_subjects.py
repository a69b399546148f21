"""What can be reviewed: phases, tasks, initiatives and errands, and whose work each is.

A review is about a row of the plan. Its comments are those of phases: a task has those of its
phase, an initiative those of all its phases. An errand belongs to no phase and has none.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from herdbook.domain.agents.model import Agent
from herdbook.domain.errors import InvalidValue, NotFound
from herdbook.domain.plan.model import (
    Errand,
    ErrandStatus,
    Initiative,
    InitiativeStatus,
    Phase,
    PhaseStatus,
    Task,
    TaskStatus,
)
from herdbook.ports.engine.dictionary import AGENTS, ERRANDS, INITIATIVES, PHASES, TASKS
from herdbook.ports.engine.kinds import Kind
from herdbook.ports.engine.query import find
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services import crud

Reviewed = Phase | Task | Initiative | Errand
KINDS: Final[tuple[Kind[Any], ...]] = (PHASES, TASKS, INITIATIVES, ERRANDS)
MOST_TASKS: Final = 1_000
"""How many tasks of a phase are read to find out who worked on it."""
_HELD: Final = (TaskStatus.IN_PROGRESS, TaskStatus.QUALITY_REVIEW)


class ReviewStep(NamedTuple):
    """An operation that ends a review: it accepts the work, or sends it back."""

    label: str
    method: str
    params: dict[str, Any]


class ReviewSubject(NamedTuple):
    """A row that is reviewed, and what is known of the work on it.

    New comments belong to the phase of `phase_id`; those of all `phase_ids` are shown. The agents
    are those that work or worked on it, the latest first. `branch` is the initiative's or the
    errand's, and `merge_base` the commit where the work of the phase began.
    """

    kind: str
    id: str
    name: str
    status: str
    since: datetime
    agents: tuple[Agent, ...]
    steps: tuple[ReviewStep, ...]
    branch: str | None
    base_branch: str | None
    initiative_id: str | None = None
    initiative: str | None = None
    merge_base: str | None = None
    phase_id: str | None = None
    phase_ids: tuple[str, ...] = ()


def find_subject(uow: UnitOfWork, named: str) -> ReviewSubject:
    """What an id, the beginning of one, or a name means among all that can be reviewed.

    Raises NotFound if there is no such row, and InvalidValue if it could be several.
    """
    by_prefix = [kind for kind in KINDS if kind.prefix and named.startswith(f"{kind.prefix}_")]
    found: list[Reviewed] = []
    for kind in by_prefix or KINDS:
        try:
            found.append(crud.find_row(uow, kind, named))
        except NotFound:
            continue
    if not found:
        raise NotFound("phase, task, initiative or errand", named)
    if len(found) > 1:
        ids = ", ".join(each.id for each in found)
        raise InvalidValue("subject", f"{named!r} could be any of {ids}")
    return describe_subject(uow, found[0])


def describe_subject(uow: UnitOfWork, row: Reviewed) -> ReviewSubject:
    """What is known of the work on a row."""
    if isinstance(row, Errand):
        return _describe_errand(uow, row)
    phase = _phase_of(uow, row)
    owner = _initiative_of(uow, row, phase)
    phases = [phase] if phase is not None else []
    if isinstance(row, Initiative):
        phases = uow.phases.of_initiative(row.id)
        phase = _last_begun(phases)
    return ReviewSubject(
        _kind_of(row),
        row.id,
        row.name,
        row.status,
        row.updated_at,
        _agents_of(uow, _tasks_of(uow, row, phases)),
        review_steps(row),
        None if owner is None else owner.branch,
        _default_branch(uow, owner),
        None if owner is None else owner.id,
        None if owner is None else owner.name,
        None if phase is None or isinstance(row, Initiative) else phase.merge_base,
        None if phase is None else phase.id,
        tuple(each.id for each in phases),
    )


def review_steps(row: Reviewed) -> tuple[ReviewStep, ...]:
    """The operations that end the review of a row; none for one that was not handed in.

    That of a task goes under the fence of its review, so that nobody ends a review of earlier work.
    """
    if isinstance(row, Phase) and row.status is PhaseStatus.PENDING_REVIEW:
        return _set_status("phase.set", row.id, "completed", "in_progress")
    if isinstance(row, Initiative) and row.status is InitiativeStatus.PENDING_REVIEW:
        return _set_status("initiative.set", row.id, "completed", "active")
    if isinstance(row, Task) and row.status is TaskStatus.QUALITY_REVIEW:
        claim = {"task": row.id, "fence": row.fence}
        return (
            ReviewStep("Complete", "task.done", claim),
            ReviewStep("Back to work", "task.fail", claim),
        )
    if isinstance(row, Errand) and row.status in (
        ErrandStatus.PENDING_REVIEW,
        ErrandStatus.CONFLICT,
    ):
        moves = (("Merged", "merged"), ("Back to work", "active"), ("Abandon", "abandoned"))
        return tuple(
            ReviewStep(label, "errand.move", {"errand": row.id, "status": status})
            for label, status in moves
        )
    return ()


def _set_status(method: str, key: str, done: str, again: str) -> tuple[ReviewStep, ...]:
    return (
        ReviewStep("Complete", method, {"id": key, "status": done}),
        ReviewStep("Back to work", method, {"id": key, "status": again}),
    )


def _kind_of(row: Reviewed) -> str:
    return next(kind.title for kind in KINDS if isinstance(row, kind.entity))


def _phase_of(uow: UnitOfWork, row: Phase | Task | Initiative) -> Phase | None:
    if isinstance(row, Phase):
        return row
    if isinstance(row, Task) and row.phase_id is not None:
        return uow.phases.get(row.phase_id)
    return None


def _initiative_of(
    uow: UnitOfWork, row: Phase | Task | Initiative, phase: Phase | None
) -> Initiative | None:
    if isinstance(row, Initiative):
        return row
    owner = row.initiative_id if phase is None else phase.initiative_id
    return None if owner is None else uow.initiatives.get(owner)


def _last_begun(phases: Sequence[Phase]) -> Phase | None:
    """The phase that comments on an initiative belong to: the last one that was begun."""
    begun = [each for each in phases if each.status is not PhaseStatus.PENDING]
    return next(reversed(begun or phases), None)


def _default_branch(uow: UnitOfWork, initiative: Initiative | None) -> str | None:
    """The branch that the initiative's only project is merged into."""
    projects = [] if initiative is None else uow.projects.of_initiative(initiative.id)
    return projects[0].default_branch if len(projects) == 1 else None


def _tasks_of(
    uow: UnitOfWork, row: Phase | Task | Initiative, phases: Iterable[Phase]
) -> list[Task]:
    if isinstance(row, Task):
        return [row]
    found = [task for each in phases for task in uow.tasks.of_phase(each.id, limit=MOST_TASKS)]
    if isinstance(row, Initiative):
        found += uow.tasks.of_initiative(row.id, limit=MOST_TASKS)
    return found


def _agents_of(uow: UnitOfWork, tasks: Sequence[Task]) -> tuple[Agent, ...]:
    """The agents of tasks: those that hold one first, then whose task changed last."""
    latest = sorted(tasks, key=lambda each: (each.status in _HELD, each.updated_at), reverse=True)
    ids = dict.fromkeys(each.assignee_id for each in latest if each.assignee_id is not None)
    agents: list[Agent] = [each for each in uow.get(AGENTS, list(ids)) if each is not None]
    if not agents and len(tasks) == 1:
        agents = uow.select(find(AGENTS, {"task_id": tasks[0].id}))
    return tuple(agents)


def _describe_errand(uow: UnitOfWork, errand: Errand) -> ReviewSubject:
    agent = None if errand.agent_id is None else uow.agents.find(errand.agent_id)
    return ReviewSubject(
        _kind_of(errand),
        errand.id,
        errand.description.partition("\n")[0],
        errand.status,
        errand.updated_at,
        () if agent is None else (agent,),
        review_steps(errand),
        errand.branch,
        errand.base_branch,
    )
