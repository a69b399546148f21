"""The worktrees of a repository, as its work space knows them."""

from datetime import timedelta
from typing import NamedTuple

from herdbook.domain.agents.model import ACTIVE_STATUSES, Agent, AgentStatus, Worktree
from herdbook.domain.entity import evolve
from herdbook.domain.plan.model import Task
from herdbook.ports.engine.dictionary import AGENTS, TASKS
from herdbook.ports.engine.query import any_of, find
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork

SEEN_AGAIN = timedelta(hours=1)
"""How old the last sight of a worktree may be before it is written down again."""


class Inhabitants(NamedTuple):
    """The agents of a worktree, and the tasks they hold."""

    agents: tuple[Agent, ...]
    tasks: tuple[Task, ...]

    @property
    def at_work(self) -> tuple[Agent, ...]:
        """Those that are not done."""
        return tuple(agent for agent in self.agents if agent.status in ACTIVE_STATUSES)


def see(
    uow: UnitOfWork, worktree_id: str, path: str, *, branch: str | None, is_main: bool
) -> Worktree:
    """Write down that somebody works in a worktree; what is known and fresh is left alone."""
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
    if unchanged and uow.now - known.last_seen_at < SEEN_AGAIN:
        return known
    return uow.worktrees.save(evolve(seen, version=known.version))


def inhabitants(uow: UnitOfWork, worktree_id: str) -> Inhabitants:
    """Who is in a worktree, and at what."""
    where = {"worktree_id": worktree_id, "status": any_of(AgentStatus)}
    agents = uow.agents.select(find(AGENTS, where))
    tasks = []
    if agents:
        held = find(TASKS, {"assignee_id": any_of([agent.id for agent in agents])})
        tasks = [task for task in uow.tasks.select(held) if not task.finished]
    return Inhabitants(tuple(agents), tuple(tasks))
