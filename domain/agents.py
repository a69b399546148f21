"""The agents, the worktrees they work in, and the accounts they run on."""

from datetime import datetime
from enum import StrEnum

from herdbook.domain.entity import Worked, entity
from herdbook.domain.values import Document, Id, Name, Text


class AgentStatus(StrEnum):
    IDLE = "idle"
    RUNNING = "running"
    WAITING_FOR_INPUT = "waiting_for_input"
    STOPPED = "stopped"
    CRASHED = "crashed"


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
    """Whether a running agent's process is gone.

    `started_at` is when the process that now has the agent's pid was started, None if there is
    none: a pid that another program was given since does not keep an agent alive. Of agents on
    other hosts nothing can be said.
    """
    if agent.status is not AgentStatus.RUNNING or agent.pid is None or agent.host != host:
        return False
    return started_at is None or (
        agent.process_started_at is not None and started_at != agent.process_started_at
    )
