"""A herd that has worked for hours, written into a real store with the times of those hours."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from herdbook.adapters import open_store
from herdbook.domain.agents.model import Agent
from herdbook.domain.location.areas import Area
from herdbook.domain.plan.model import Task
from herdbook.ports.unit_of_work.run import run
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.ports.world.halts import NO_HALTS
from herdbook.services.agents import agent_lifecycle
from herdbook.services.plan import claims
from tests.e2e.conftest import Person


class PastHerd:
    """Agents whose work is written at a time that the caller sets."""

    def __init__(self, person: Person, folder: Path, agents: int, since: timedelta) -> None:
        place = person.at(folder).workspace
        self.now = datetime.now(UTC) - since
        self._space = place.space(Area.WORK)
        place.open_store(place.locate(Area.WORK), create=True).close()
        self.store = open_store(place.locate(Area.WORK).url, clock=lambda: self.now)
        self.agents: list[str] = self.run(
            lambda uow: [
                each.id
                for each in uow.agents.add_all(
                    [Agent(name=f"agent-{number:03}") for number in range(agents)]
                )
            ]
        )

    def run(self, use_case: Any, *args: Any, **options: Any) -> Any:
        """Run a use case at the time that it is."""
        return run(self.store, self._space, use_case, *args, **options)

    def work(self, rounds: int, step: timedelta) -> None:
        """Let every agent claim a task and complete it, all in one time, so many times."""
        for _ in range(rounds):
            self.run(self._claim_each)
            self.now += step
            self.run(self._complete_each)
            self.now += step / 4

    def _claim_each(self, uow: UnitOfWork) -> None:
        for number, agent in enumerate(self.agents):
            task = uow.tasks.add(Task(name=f"task {number} of {self.now:%H:%M}"))
            claims.claim(uow, agent, halts=NO_HALTS, task_id=task.id)

    def _complete_each(self, uow: UnitOfWork) -> None:
        for task in uow.tasks.in_progress_of(self.agents):
            claims.complete(uow, task.id, task.fence)

    def ask(self, number: int, text: str) -> None:
        """Let an agent wait for a person."""
        self.run(agent_lifecycle.wait, self.agents[number], [text])

    def close(self) -> None:
        self.store.close()
