"""The reaction by which an agent's task, initiative and status follow what the agent holds."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from herdbook.domain.agents.current_work import stay_at, take_up
from herdbook.domain.agents.model import Agent
from herdbook.domain.plan.claims import HELD
from herdbook.domain.plan.model import Task, TaskStatus
from herdbook.domain.plan.readiness import holder_of
from herdbook.ports.engine.dictionary import AGENTS, PHASES, PROPOSALS, TASKS
from herdbook.ports.engine.kinds import Kind
from herdbook.ports.engine.query import any_of, find
from herdbook.ports.unit_of_work.changes import NetChanges, RowChange

if TYPE_CHECKING:
    from herdbook.ports.unit_of_work.reactions import FindRow
    from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork

FOLLOWED = frozenset({TASKS.name, PHASES.name, PROPOSALS.name, AGENTS.name})
"""The kinds of rows whose changes this reaction looks at."""


def agents_follow_tasks(
    uow: "UnitOfWork", nets: NetChanges, find_row: "FindRow"
) -> Iterator[tuple[Kind[Any], Any]]:
    """Let the agents that hold or held changed tasks follow them.

    An agent is at what it claimed last. When that ends, it is at another thing it holds, else at
    nothing, and idle. Its initiative is the task's; without a task, the one it was at last or made
    a proposal for.
    """
    return _CurrentWork(uow, nets, find_row).rows()


class _CurrentWork:
    def __init__(self, uow: "UnitOfWork", nets: NetChanges, find_row: "FindRow") -> None:
        self._uow = uow
        self._tasks = nets.get(TASKS.name, {})
        self._nets = nets
        self._find_row = find_row
        self._affected: dict[str, Task | None] = {}
        """The agents that may have to move, each with the task it claimed in this transaction."""
        self._proposed: dict[str, str] = {}

    def rows(self) -> Iterator[tuple[Kind[Any], Any]]:
        self._collect_tasks()
        self._collect_moved()
        for agent_id, claimed in self._affected.items():
            agent = self._find_row(AGENTS, agent_id)
            if agent is not None:
                yield AGENTS, self._follow(agent, claimed)

    def _collect_tasks(self) -> None:
        ended: list[str] = []
        for change in self._tasks.values():
            before, after = change.before, change.after
            if after is not None:
                holder = self._holder(after)
                if holder is not None:
                    claimed = after if before is None or _is_claimed(before, after) else None
                    self._affected[holder] = claimed or self._affected.get(holder)
            if before is None or after is None:
                continue  # a removed task was emptied from its agents, which are changed too
            if before.status is TaskStatus.IN_PROGRESS and before.assignee_id is not None:
                self._affected.setdefault(before.assignee_id)
            if before.status is TaskStatus.QUALITY_REVIEW or after.is_finished:
                ended.append(after.id)
        if ended:
            there = self._uow.select(find(AGENTS, {"task_id": any_of(ended)}))
            self._affect(agent.id for agent in there)

    def _collect_moved(self) -> None:
        """Find agents whose task or initiative is another without a change of the task itself."""
        phases = [
            change.key for change in self._changes(PHASES) if _has_changed(change, "initiative_id")
        ]
        if phases:
            inside = {"phase_id": any_of(phases)}
            tasks = [task for task in self._uow.select(find(TASKS, inside)) if task.status in HELD]
            holders = map(self._holder, tasks)
            self._affect(each for each in holders if each is not None)
        for change in self._changes(AGENTS):
            if _has_changed(change, "task_id") or _has_changed(change, "initiative_id"):
                self._affected.setdefault(change.key)
        for change in self._changes(PROPOSALS):
            if change.before is None:
                self._proposed[change.after.agent_id] = change.after.initiative_id
        self._affect(self._proposed)
        self._affect(self._uow.reactions.saved.get(AGENTS.name, ()))

    def _changes(self, kind: Kind[Any]) -> list[RowChange]:
        return list(self._nets.get(kind.name, {}).values())

    def _affect(self, agent_ids: Iterable[str]) -> None:
        for each in agent_ids:
            self._affected.setdefault(each)

    def _follow(self, agent: Agent, claimed: Task | None) -> Agent:
        if claimed is not None:
            return take_up(agent, claimed.id, self._initiative(claimed))
        current = None if agent.task_id is None else self._uow.tasks.find(agent.task_id)
        task = current
        if current is None or self._holder(current) != agent.id:
            task = self._other_held(agent) or self._by_hand(current)
        if task is not None:
            return stay_at(agent, task.id, self._initiative(task))
        return stay_at(agent, None, self._proposed.get(agent.id, agent.initiative_id))

    def _by_hand(self, task: Task | None) -> Task | None:
        """The task that an agent was set to by hand; it stays there until the task ends."""
        change = None if task is None else self._tasks.get(task.id)
        if task is None or change is None:
            return task
        was_held = change.before is not None and change.before.status in HELD
        return None if was_held or task.is_finished else task

    def _other_held(self, agent: Agent) -> Task | None:
        """Of what an agent holds, the task that was changed last."""
        held = self._uow.tasks.in_progress_of([agent.id])
        reviews = self._uow.openings.reviews_of([agent.id])
        held += self._uow.tasks.get_many(each.task_id for each in reviews)
        return max(held, key=lambda task: (task.updated_at, task.id), default=None)

    def _holder(self, task: Task) -> str | None:
        if task.status not in HELD:
            return None
        reviewed = task.status is TaskStatus.QUALITY_REVIEW
        return holder_of(task, self._uow.openings.find(task.id) if reviewed else None)

    def _initiative(self, task: Task) -> str | None:
        if task.phase_id is None:
            return task.initiative_id
        return self._uow.phases.get(task.phase_id).initiative_id


def _is_claimed(before: Task, after: Task) -> bool:
    """Whether a held task was claimed in between: each claim has a fence of its own.

    A task that is held again because its end was undone has the fence that it had.
    """
    return before.fence != after.fence


def _has_changed(change: RowChange, field: str) -> bool:
    """Whether a row that was there, and still is, has another value in a field."""
    if change.before is None or change.after is None:
        return False
    return bool(getattr(change.before, field) != getattr(change.after, field))
