"""The agents, the worktrees they work in, and the accounts they run on."""

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from herdbook.domain.entity import Worked, entity
from herdbook.domain.values import Document, Id, Name, Text


class AgentStatus(StrEnum):
    IDLE = "idle"
    RUNNING = "running"
    WAITING_FOR_INPUT = "waiting_for_input"
    STOPPED = "stopped"
    CRASHED = "crashed"


AT_WORK: Final = (AgentStatus.RUNNING, AgentStatus.WAITING_FOR_INPUT)
"""How an agent stands that is not done."""
SAME_START: Final = timedelta(seconds=5)
"""How far two readings of one process's start may lie apart.

Systems count it from boot, so it moves when the machine's clock is set. No pid comes round again
this soon.
"""


class AgentMode(StrEnum):
    EXECUTE = "execute"
    DISCUSS = "discuss"
    PLAN = "plan"
    DETAIL = "detail"
    REFINE = "refine"


@entity
class Worktree(Worked):
    """A git worktree somebody has worked in; its id is the worktree's identity."""

    path: Text
    branch: Name | None = None
    is_main: bool = False
    last_seen_at: datetime


@entity
class Agent(Worked):
    """A coding agent: what it runs as, what it works on, how it stands."""

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


def has_crashed(agent: Agent, host: str, started_at: datetime | None) -> bool:
    """Whether the process of an agent at work is gone.

    `started_at` is when the process that now has the agent's pid was started, None if there is
    none: a pid that another program was given since does not keep an agent alive. Of agents on
    other hosts nothing can be said.
    """
    if agent.status not in AT_WORK or agent.pid is None or agent.host != host:
        return False
    if started_at is None or agent.process_started_at is None:
        return started_at is None
    return abs(started_at - agent.process_started_at) > SAME_START
