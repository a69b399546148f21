"""Agents, and the worktrees they work in."""

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from herdbook.domain.entity import WorkEntity, entity
from herdbook.domain.values import Count, Document, Id, Name, Text


class AgentStatus(StrEnum):
    IDLE = "idle"
    RUNNING = "running"
    WAITING_FOR_INPUT = "waiting_for_input"
    STOPPED = "stopped"
    CRASHED = "crashed"


ACTIVE_STATUSES: Final = (AgentStatus.IDLE, AgentStatus.RUNNING, AgentStatus.WAITING_FOR_INPUT)
"""The statuses of an agent that has not finished."""
START_TOLERANCE: Final = timedelta(seconds=5)
"""How far apart two readings of the same process's start time may be.

Systems count it from boot, so it moves when the machine's clock is set. No pid is reused this soon.
"""


class AgentMode(StrEnum):
    EXECUTE = "execute"
    DISCUSS = "discuss"
    PLAN = "plan"
    DETAIL = "detail"
    REFINE = "refine"


@entity
class Worktree(WorkEntity):
    """A git worktree that somebody has worked in; its id is the worktree's identity."""

    path: Text
    branch: Name | None = None
    is_main: bool = False
    last_seen_at: datetime


@entity
class Agent(WorkEntity):
    """A coding agent: what it runs as, what it works on, and its status."""

    name: Name
    task_id: Id | None = None
    initiative_id: Id | None = None
    session_id: Name | None = None
    provider: Name = "claude"
    model: Name | None = None
    account_id: Id | None = None
    status: AgentStatus = AgentStatus.IDLE
    mode: AgentMode = AgentMode.EXECUTE
    host: Name | None = None
    pid: int | None = None
    process_started_at: datetime | None = None
    exit_code: int | None = None
    prompt: Text | None = None
    output_file_path: Text | None = None
    result: Document | None = None
    pending_questions: Document | None = None
    user_dismissed_at: datetime | None = None
    log_session: Count = 1


@entity
class WaitingAgent(Agent):
    """An agent that waits for a person, with the names of what it is at, as far as known."""

    task_name: Name | None = None
    task_description: Text | None = None
    phase_name: Name | None = None
    initiative_name: Name | None = None


def has_crashed(agent: Agent, host: str, started_at: datetime | None) -> bool:
    """Whether the process of an active agent is gone.

    `started_at` is the start time of the process that has the agent's pid now, or None if there is
    none: a pid that was reused by another program does not keep an agent alive. For agents on other
    hosts the answer is always False, because nothing is known about them.
    """
    if agent.status not in ACTIVE_STATUSES or agent.pid is None or agent.host != host:
        return False
    if started_at is None or agent.process_started_at is None:
        return started_at is None
    return abs(started_at - agent.process_started_at) > START_TOLERANCE
