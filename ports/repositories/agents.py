"""Named queries for agents and worktrees."""

from typing import Any, NamedTuple, TypeVar

from herdbook.domain.agents.model import Agent, AgentStatus, Worktree
from herdbook.ports.engine.dictionary import INITIATIVES, PHASES, TASKS
from herdbook.ports.engine.kinds import Kind
from herdbook.ports.engine.query import find
from herdbook.ports.repositories.base import Repository

E = TypeVar("E")


class AgentInContext(NamedTuple):
    """An agent with the names of its task, phase and initiative, as far as they are known."""

    agent: Agent
    task_name: str | None
    task_description: str | None
    phase_name: str | None
    initiative_name: str | None

    @property
    def names(self) -> dict[str, str | None]:
        """All but the agent, by name."""
        return {name: value for name, value in self._asdict().items() if name != "agent"}


class Agents(Repository[Agent]):
    """The agents of a space."""

    def by_name(self, name: str) -> Agent | None:
        """The agent with this name."""
        return self.first(find(self.kind, {"name": name}))

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

    def waiting_with_context(self) -> list[AgentInContext]:
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
        contexts = []
        for agent in agents:
            task = tasks.get(agent.task_id or "")
            phase = phases.get(task.phase_id or "") if task else None
            initiative = initiatives.get(owners[agent.id] or "")
            contexts.append(
                AgentInContext(
                    agent,
                    task_name=task.name if task else None,
                    task_description=task.description if task else None,
                    phase_name=phase.name if phase else None,
                    initiative_name=initiative.name if initiative else None,
                )
            )
        return contexts

    def _rows_by_key(self, kind: Kind[E], keys: list[Any]) -> dict[str, E]:
        wanted = list(dict.fromkeys(key for key in keys if key))
        if not wanted:
            return {}
        rows = self.uow.get(kind, wanted)
        return {key: row for key, row in zip(wanted, rows, strict=True) if row is not None}


class Worktrees(Repository[Worktree]):
    """The worktrees somebody has worked in."""
