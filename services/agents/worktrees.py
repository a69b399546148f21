"""The worktrees of a repository, as its work space records them."""

from datetime import timedelta
from typing import NamedTuple

from herdbook.domain.agents.model import ACTIVE_STATUSES, Agent, AgentStatus, Worktree
from herdbook.domain.entity import evolve
from herdbook.domain.plan.model import Task
from herdbook.ports.engine.dictionary import AGENTS, TASKS
from herdbook.ports.engine.query import any_of, find
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork

REFRESH_AFTER = timedelta(hours=1)
"""How old `last_seen_at` of a worktree may be before it is written again."""


class WorktreeOccupants(NamedTuple):
    """The agents of a worktree, and the unfinished tasks assigned to them."""

    agents: tuple[Agent, ...]
    tasks: tuple[Task, ...]

    @property
    def at_work(self) -> tuple[Agent, ...]:
        """The agents that have not ended."""
        return tuple(agent for agent in self.agents if agent.status in ACTIVE_STATUSES)


def record_worktree(
    uow: UnitOfWork, worktree_id: str, path: str, *, branch: str | None, is_main: bool
) -> Worktree:
    """Record a worktree as in use; a row that is unchanged and fresh is not written again."""
    known = uow.worktrees.find(worktree_id)
    seen = Worktree(
        id=worktree_id,
        worktree_id=worktree_id,
        path=path,
        branch=branch,
        is_main=is_main,
        last_seen_at=uow.now,
    )
    if known is None:
        return uow.worktrees.add(seen)
    unchanged = (known.path, known.branch, known.is_main) == (path, branch, is_main)
    if unchanged and uow.now - known.last_seen_at < REFRESH_AFTER:
        return known
    return uow.worktrees.save(evolve(seen, version=known.version))


def worktree_occupants(uow: UnitOfWork, worktree_id: str) -> WorktreeOccupants:
    """The agents of a worktree and their tasks."""
    where = {"worktree_id": worktree_id, "status": any_of(AgentStatus)}
    agents = uow.agents.select(find(AGENTS, where))
    tasks = []
    if agents:
        held = find(TASKS, {"assignee_id": any_of([agent.id for agent in agents])})
        tasks = [task for task in uow.tasks.select(held) if not task.is_finished]
    return WorktreeOccupants(tuple(agents), tuple(tasks))
