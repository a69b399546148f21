"""What an editor shows beside a file: comments on the current initiative, and agents at work."""

from collections.abc import Iterable
from typing import NamedTuple, TypeVar

from herdbook.domain.agents.model import ACTIVE_STATUSES, Agent, AgentStatus
from herdbook.domain.plan.model import (
    OPEN_INITIATIVES,
    Initiative,
    InitiativeStatus,
    Phase,
    Task,
    TaskStatus,
)
from herdbook.ports.engine.dictionary import AGENTS, INITIATIVES, PHASES, TASKS
from herdbook.ports.engine.kinds import Kind
from herdbook.ports.engine.query import any_of, find
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services.plan import reviews
from herdbook.services.plan.reviews import CommentThread

E = TypeVar("E")

_SHOWN = (*ACTIVE_STATUSES, AgentStatus.CRASHED)
_HELD = (TaskStatus.IN_PROGRESS, TaskStatus.QUALITY_REVIEW)


class PhaseThread(NamedTuple):
    """A comment thread and the phase whose diff it is on."""

    phase: Phase
    thread: CommentThread


class InitiativeComments(NamedTuple):
    """The current initiative and all comment threads of its phases, oldest first."""

    initiative: Initiative | None
    threads: tuple[PhaseThread, ...]


class AgentAssignment(NamedTuple):
    """An agent, the tasks it works on, and the initiative they belong to."""

    agent: Agent
    tasks: tuple[Task, ...]
    initiative: Initiative | None


def current_initiative(
    uow: UnitOfWork, branch: str | None = None, worktree_id: str | None = None
) -> Initiative | None:
    """The current initiative of a worktree in which a branch is checked out.

    It is the initiative of that branch; else the one the agents at work in the worktree work on,
    if they all work on the same one; else the only active one.
    """
    unfinished = [each for status in OPEN_INITIATIVES for each in uow.initiatives.by_status(status)]
    of_branch = [each for each in unfinished if branch is not None and each.branch == branch]
    if of_branch:
        return of_branch[0]
    if worktree_id is not None:
        where = {"worktree_id": worktree_id, "status": any_of(ACTIVE_STATUSES)}
        hands = _assignments_of(uow, uow.agents.select(find(AGENTS, where)))
        found = {hand.initiative.id: hand.initiative for hand in hands if hand.initiative}
        if len(found) == 1:
            return found.popitem()[1]
    active = [each for each in unfinished if each.status is InitiativeStatus.ACTIVE]
    return active[0] if len(active) == 1 else None


def initiative_comments(
    uow: UnitOfWork, branch: str | None = None, worktree_id: str | None = None
) -> InitiativeComments:
    """All comments on the current initiative, resolved or not."""
    initiative = current_initiative(uow, branch, worktree_id)
    if initiative is None:
        return InitiativeComments(None, ())
    threads = [
        PhaseThread(phase, thread)
        for phase in uow.phases.of_initiative(initiative.id)
        for thread in reviews.threads(uow, phase.id)
    ]
    threads.sort(key=lambda each: (each.thread.first.created_at, each.thread.first.id))
    return InitiativeComments(initiative, tuple(threads))


def agent_assignments(uow: UnitOfWork) -> list[AgentAssignment]:
    """The agents worth showing, by name, each with its tasks, the most urgent first."""
    agents = uow.agents.select(find(AGENTS, {"status": any_of(_SHOWN)}))
    shown = [
        each
        for each in agents
        if each.status is not AgentStatus.CRASHED or each.user_dismissed_at is None
    ]
    return sorted(_assignments_of(uow, shown), key=lambda hand: hand.agent.name)


def _assignments_of(uow: UnitOfWork, agents: list[Agent]) -> list[AgentAssignment]:
    """Agents with the tasks they hold, or else the one they were started for, in few queries."""
    if not agents:
        return []
    theirs = find(TASKS, {"assignee_id": any_of([agent.id for agent in agents])})
    held: dict[str | None, list[Task]] = {}
    for task in uow.tasks.select(theirs):
        if task.status in _HELD:
            held.setdefault(task.assignee_id, []).append(task)
    for tasks in held.values():
        tasks.sort(key=lambda task: (task.priority.rank, task.order, task.created_at, task.id))
    set_to = _rows(uow, TASKS, [each.task_id for each in agents if each.id not in held])
    at = {
        each.id: held.get(each.id) or [task for task in set_to.values() if task.id == each.task_id]
        for each in agents
    }
    phases = _rows(uow, PHASES, [task.phase_id for tasks in at.values() for task in tasks])
    owners = {each.id: _initiative_id_of(each, at[each.id], phases) for each in agents}
    initiatives = _rows(uow, INITIATIVES, owners.values())
    return [
        AgentAssignment(each, tuple(at[each.id]), initiatives.get(owners[each.id] or ""))
        for each in agents
    ]


def _initiative_id_of(agent: Agent, tasks: Iterable[Task], phases: dict[str, Phase]) -> str | None:
    """The initiative an agent names, else that of a task's phase, else that of a task."""
    if agent.initiative_id is not None:
        return agent.initiative_id
    for task in tasks:
        phase = phases.get(task.phase_id or "")
        owner = task.initiative_id if phase is None else phase.initiative_id
        if owner is not None:
            return owner
    return None


def _rows(uow: UnitOfWork, kind: Kind[E], keys: Iterable[str | None]) -> dict[str, E]:
    wanted = list(dict.fromkeys(key for key in keys if key is not None))
    return dict(zip(wanted, uow.get_existing(kind, wanted), strict=True)) if wanted else {}
