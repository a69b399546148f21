"""What agents hold, recounted from the tasks and openings of a space."""

from herdbook.domain.agents.model import AgentStatus
from herdbook.domain.plan.model import Task, TaskStatus
from herdbook.ports.engine.dictionary import AGENTS, OPENINGS, PHASES, TASKS
from herdbook.ports.engine.query import find
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork


class Holdings:
    """What the agents of a space hold at one moment."""

    def __init__(self, uow: UnitOfWork) -> None:
        self.reviewers = {each.task_id: each.reviewer_id for each in uow.select(find(OPENINGS))}
        self.tasks = {each.id: each for each in uow.select(find(TASKS))}
        self._phases = {each.id: each for each in uow.select(find(PHASES))}
        self.agents = {each.id: each for each in uow.select(find(AGENTS))}

    def of(self, agent_id: str) -> set[str]:
        """The ids of the tasks and reviews that an agent holds."""
        return {each.id for each in self.tasks.values() if self._holder(each) == agent_id}

    def initiative_of(self, task_id: str) -> str | None:
        """The initiative that a task belongs to."""
        task = self.tasks[task_id]
        phase = self._phases.get(task.phase_id or "")
        return task.initiative_id if phase is None else phase.initiative_id

    def _holder(self, task: Task) -> str | None:
        if task.status is TaskStatus.IN_PROGRESS:
            return task.assignee_id
        return self.reviewers.get(task.id) if task.status is TaskStatus.QUALITY_REVIEW else None


def check_agents(after: Holdings, before: Holdings | None = None) -> None:
    """Check that every agent is at something it holds, and idle if it is at nothing.

    With what was held `before`, an agent that holds nothing may be at a task by hand, but not at
    one that it has handed in or lost since.
    """
    for agent in after.agents.values():
        held = after.of(agent.id)
        if held:
            assert agent.task_id in held, agent
            assert agent.initiative_id == after.initiative_of(str(agent.task_id)), agent
        elif before is None:
            assert agent.task_id is None, agent
        elif agent.task_id is not None:
            assert agent.task_id not in before.of(agent.id), agent
        if agent.status in (AgentStatus.IDLE, AgentStatus.RUNNING):
            expected = AgentStatus.IDLE if agent.task_id is None else AgentStatus.RUNNING
            assert agent.status is expected, agent
