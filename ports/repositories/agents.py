"""Named queries for agents and worktrees."""

from typing import Any, TypeVar

from herdbook.domain.agents.model import (
    ACTIVE_STATUSES,
    Agent,
    AgentStatus,
    WaitingAgent,
    Worktree,
)
from herdbook.domain.plan.model import Task
from herdbook.domain.plan.readiness import Opening, holder_of
from herdbook.ports.engine.dictionary import INITIATIVES, PHASES, TASKS
from herdbook.ports.engine.kinds import Kind
from herdbook.ports.engine.query import any_of, find
from herdbook.ports.repositories.base import Repository

E = TypeVar("E")


class Agents(Repository[Agent]):
    """The agents of a space."""

    def by_name(self, name: str) -> Agent | None:
        """The agent with this name."""
        return self.first(find(self.kind, {"name": name}))

    def find_holder(self, task: Task, opening: Opening | None) -> Agent | None:
        """The agent that holds a task or its review, if there is one and it is known."""
        holder = holder_of(task, opening)
        return None if holder is None else self.find(holder)

    def at_work(self) -> list[Agent]:
        """The agents that have not ended, oldest first."""
        return self.select(find(self.kind, {"status": any_of(ACTIVE_STATUSES)}))

    def of_task(self, task_id: str) -> list[Agent]:
        """The agents of a task."""
        return self.select(find(self.kind, {"task_id": task_id}))

    def by_session(self, session_id: str) -> list[Agent]:
        """The agents of a session, to be resumed."""
        return self.select(find(self.kind, {"session_id": session_id}))

    def by_status(
        self, status: AgentStatus, *, limit: int | None = None, after: Agent | None = None
    ) -> list[Agent]:
        """Agents in this status, oldest first."""
        return self.select(find(self.kind, {"status": status}, limit=limit, after=after))

    def of_initiative(self, initiative_id: str) -> list[Agent]:
        """The agents that are at an initiative, or were last."""
        return self.select(find(self.kind, {"initiative_id": initiative_id}))

    def waiting_with_context(self) -> list[WaitingAgent]:
        """Agents that wait for a person, each with its task, phase and initiative.

        At most one query per kind, however many agents wait. An agent's initiative is the one it
        names; else that of its task's phase; else that of its task.
        """
        agents = self.by_status(AgentStatus.WAITING_FOR_INPUT)
        tasks = self._rows_by_key(TASKS, [agent.task_id for agent in agents])
        phases = self._rows_by_key(PHASES, [task.phase_id for task in tasks.values()])
        owners: dict[str, str | None] = {}
        for agent in agents:
            task = tasks.get(agent.task_id or "")
            phase = phases.get(task.phase_id or "") if task else None
            owners[agent.id] = (
                agent.initiative_id
                or (phase.initiative_id if phase else None)
                or (task.initiative_id if task else None)
            )
        initiatives = self._rows_by_key(INITIATIVES, list(owners.values()))
        found = []
        for agent in agents:
            task = tasks.get(agent.task_id or "")
            phase = phases.get(task.phase_id or "") if task else None
            initiative = initiatives.get(owners[agent.id] or "")
            found.append(
                WaitingAgent(
                    **vars(agent),
                    task_name=task.name if task else None,
                    task_description=task.description if task else None,
                    phase_name=phase.name if phase else None,
                    initiative_name=initiative.name if initiative else None,
                )
            )
        return found

    def _rows_by_key(self, kind: Kind[E], keys: list[Any]) -> dict[str, E]:
        wanted = list(dict.fromkeys(key for key in keys if key))
        if not wanted:
            return {}
        rows = self.uow.get(kind, wanted)
        return {key: row for key, row in zip(wanted, rows, strict=True) if row is not None}


class Worktrees(Repository[Worktree]):
    """The worktrees somebody has worked in."""
