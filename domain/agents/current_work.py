"""What an agent is at: its task, initiative and status follow from what it holds."""

from herdbook.domain.agents.model import Agent, AgentStatus
from herdbook.domain.entity import evolve

_AT_WORK = (AgentStatus.IDLE, AgentStatus.RUNNING)


def status_at(task_id: str | None) -> AgentStatus:
    """The status of an agent that neither waits nor has ended: idle without a task."""
    return AgentStatus.IDLE if task_id is None else AgentStatus.RUNNING


def take_up(agent: Agent, task_id: str, initiative_id: str | None) -> Agent:
    """The agent after it claimed a task or a review.

    One that waits for a person still waits. One that had ended has evidently come back.
    """
    moved = evolve(agent, task_id=task_id, initiative_id=initiative_id)
    if agent.status is AgentStatus.WAITING_FOR_INPUT:
        return moved
    if agent.status in _AT_WORK:
        return evolve(moved, status=AgentStatus.RUNNING)
    return evolve(
        moved, status=AgentStatus.RUNNING, exit_code=None, result=None, user_dismissed_at=None
    )


def stay_at(agent: Agent, task_id: str | None, initiative_id: str | None) -> Agent:
    """The agent at what it holds already, or at nothing; one that has ended stays so."""
    status = status_at(task_id) if agent.status in _AT_WORK else agent.status
    return evolve(agent, task_id=task_id, initiative_id=initiative_id, status=status)
