"""Fifty processes that claim at the same time.

In memory, which no other process can reach, the law holds for as many threads.
"""

from collections import Counter
from collections.abc import Callable
from itertools import chain

from herdbook.adapters import open_store
from herdbook.domain.agents.model import Agent
from herdbook.domain.plan.model import Task, TaskStatus
from herdbook.ports.engine.dictionary import TASKS
from herdbook.ports.engine.query import find
from herdbook.ports.unit_of_work.run import read, run
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from tests.contract import followers
from tests.contract.children import at_once, barrier, opened
from tests.contract.conftest import SHARED

PROCESSES = 50
READY = 1_000
SPACE = "work/crowd"
SEVERAL = {"duckdb": 10}
"""How many tasks are claimed in one unit of work, where each one opens a file anew."""


def plan(uow: UnitOfWork) -> tuple[list[str], list[str]]:
    """Agents, and many tasks that are ready."""
    agents = uow.agents.add_all([Agent(name=f"agent {number}") for number in range(PROCESSES)])
    tasks = uow.tasks.add_all([Task(name=f"task {number}") for number in range(READY)])
    return [agent.id for agent in agents], [task.id for task in tasks]


def test_fifty_processes_claim_a_thousand_tasks_each_exactly_once(
    engine: str, new_url: Callable[[str], str]
) -> None:
    """Every task is given to one agent, and the store says the same of it as the agent does."""
    url = new_url(engine)
    place = url if engine in SHARED else open_store(url)
    with opened(place) as store:
        agents, tasks = run(store, SPACE, plan)
    start = barrier(place, PROCESSES)
    jobs = [(SPACE, start, agent, SEVERAL.get(engine, 1)) for agent in agents]
    shares = at_once(place, followers.claim_until_none, jobs)
    assert Counter(chain(*shares)) == Counter(tasks)
    with opened(place) as store:
        kept = read(store, SPACE, lambda uow: uow.tasks.select(find(TASKS)))
    held = {task: agent for agent, share in zip(agents, shares, strict=True) for task in share}
    assert {task.id: task.assignee_id for task in kept} == held
    assert {(task.status, task.fence, task.retry_count) for task in kept} == {
        (TaskStatus.IN_PROGRESS, 1, 0)
    }
