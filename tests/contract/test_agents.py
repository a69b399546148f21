"""Named questions about agents."""

import pytest

from herdbook.domain.agents.model import Agent, AgentStatus, WaitingAgent
from herdbook.domain.plan.model import Initiative, Phase, Task
from herdbook.ports.engine.dictionary import AGENTS, INITIATIVES, PHASES, TASKS
from herdbook.ports.engine.store import Store
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork, unit_of_work
from tests.cases import for_each
from tests.contract.rows import make
from tests.contract.turns import Begin, by_id, in_turn
from tests.contract.wrapped import Counting, WrappedStore

WAITING = AgentStatus.WAITING_FOR_INPUT


def in_context(
    agent: Agent, task: str | None, description: str | None, phase: str | None, owner: str | None
) -> WaitingAgent:
    """The agent with the names of what it is at."""
    return WaitingAgent(
        **vars(agent),
        task_name=task,
        task_description=description,
        phase_name=phase,
        initiative_name=owner,
    )


def test_an_agent_is_found_by_its_name(begin: Begin) -> None:
    """The whole name counts, and nothing like it."""
    with begin() as uow:
        agent = make(uow, AGENTS, name="brave-otter")
        uow.commit()
    with begin(write=False) as uow:
        assert uow.agents.by_name("brave-otter") == agent
        assert uow.agents.by_name("Brave-Otter") is None
        assert uow.agents.by_name("brave") is None


def test_agents_of_a_task_are_all_that_are_at_it(begin: Begin) -> None:
    """Agents at another task or at none are not among them."""
    with begin() as uow:
        here, there, empty = (make(uow, TASKS) for _ in range(3))
        agents = [make(uow, AGENTS, task_id=task.id) for task in (here, here, there)]
        make(uow, AGENTS)
        uow.commit()
    with begin(write=False) as uow:
        assert by_id(uow.agents.of_task(here.id)) == by_id(agents[:2])
        assert uow.agents.of_task(empty.id) == []


def test_agents_of_a_session_are_found_by_it(begin: Begin) -> None:
    """A session may have had several agents; one that nobody had has none."""
    with begin() as uow:
        agents = [make(uow, AGENTS, session_id=session) for session in ("s-1", "s-1", "s-2", None)]
        uow.commit()
    with begin(write=False) as uow:
        assert by_id(uow.agents.by_session("s-1")) == by_id(agents[:2])
        assert uow.agents.by_session("s-3") == []


def test_agents_by_status_are_those_in_it_oldest_first(begin: Begin) -> None:
    """Age decides and not the id, and pages go on where they stopped."""
    running, idle = AgentStatus.RUNNING, AgentStatus.IDLE
    plan = [("a", running), ("b", idle), ("c", running)]
    rows = [Agent(name=name, status=status) for name, status in plan]
    first, _, third = in_turn(begin, AGENTS, rows)
    with begin(write=False) as uow:
        assert uow.agents.by_status(running) == [first, third]
        assert uow.agents.by_status(running, limit=1) == [first]
        assert uow.agents.by_status(running, limit=1, after=first) == [third]
        assert uow.agents.by_status(AgentStatus.CRASHED) == []


def _waiting(uow: UnitOfWork, name: str, **at: str | None) -> Agent:
    return uow.agents.add(Agent(name=name, status=WAITING, **at))


def _plan(uow: UnitOfWork) -> tuple[Initiative, Phase, Task]:
    """An initiative, a phase of it and a task in that, each with a name of its own."""
    initiative = uow.initiatives.add(Initiative(name="The initiative"))
    phase = uow.phases.add(Phase(initiative_id=initiative.id, name="The phase"))
    task = Task(phase_id=phase.id, name="The task", description="What to do")
    return initiative, phase, uow.tasks.add(task)


def test_a_waiting_agent_comes_with_all_it_is_at(begin: Begin) -> None:
    """Its task's name and description, that task's phase and the phase's initiative."""
    with begin() as uow:
        _, _, task = _plan(uow)
        agent = _waiting(uow, "a", task_id=task.id)
        uow.commit()
    with begin(write=False) as uow:
        assert uow.agents.waiting_with_context() == [
            in_context(agent, "The task", "What to do", "The phase", "The initiative")
        ]


def test_a_waiting_agent_without_a_task_comes_alone(begin: Begin) -> None:
    """What is not known is None."""
    with begin() as uow:
        agent = _waiting(uow, "a")
        uow.commit()
    with begin(write=False) as uow:
        assert uow.agents.waiting_with_context() == [in_context(agent, None, None, None, None)]


def test_a_waiting_agent_of_an_initiative_needs_no_task(begin: Begin) -> None:
    """The initiative it names itself is known without any task."""
    with begin() as uow:
        initiative, _, _ = _plan(uow)
        agent = _waiting(uow, "a", initiative_id=initiative.id)
        uow.commit()
    with begin(write=False) as uow:
        assert uow.agents.waiting_with_context() == [
            in_context(agent, None, None, None, "The initiative")
        ]


@pytest.mark.parametrize("owned", [True, False], ids=["of an initiative", "loose"])
def test_a_waiting_agent_at_a_task_without_a_phase_has_no_phase(begin: Begin, owned: bool) -> None:
    """Where there is no phase, the initiative is the task's own, if it has one."""
    with begin() as uow:
        initiative, _, _ = _plan(uow)
        task = uow.tasks.add(Task(name="Loose", initiative_id=initiative.id if owned else None))
        agent = _waiting(uow, "a", task_id=task.id)
        uow.commit()
    with begin(write=False) as uow:
        assert uow.agents.waiting_with_context() == [
            in_context(agent, "Loose", None, None, "The initiative" if owned else None)
        ]


def test_a_waiting_agent_is_at_the_initiative_it_names(begin: Begin) -> None:
    """Its own word counts before its task's."""
    with begin() as uow:
        _, _, task = _plan(uow)
        other = uow.initiatives.add(Initiative(name="Another"))
        agent = _waiting(uow, "a", task_id=task.id, initiative_id=other.id)
        uow.commit()
    with begin(write=False) as uow:
        assert uow.agents.waiting_with_context() == [
            in_context(agent, "The task", "What to do", "The phase", "Another")
        ]


def test_a_waiting_agent_stays_when_its_task_goes(begin: Begin) -> None:
    """Removing an initiative leaves the agent with nothing but itself."""
    with begin() as uow:
        initiative, _, task = _plan(uow)
        agent = _waiting(uow, "a", task_id=task.id, initiative_id=initiative.id)
        uow.commit()
    with begin() as uow:
        uow.initiatives.remove(initiative.id)
        uow.commit()
    with begin(write=False) as uow:
        (context,) = uow.agents.waiting_with_context()
        assert context == in_context(uow.agents.get(agent.id), None, None, None, None)


def test_only_waiting_agents_are_asked_about_oldest_first(begin: Begin) -> None:
    """Agents in any other status are not among them."""
    others = [Agent(name=status, status=status) for status in AgentStatus if status != WAITING]
    rows = [Agent(name="z", status=WAITING), *others, Agent(name="a", status=WAITING)]
    first, *_, last = in_turn(begin, AGENTS, rows)
    with begin(write=False) as uow:
        assert [each.id for each in uow.agents.waiting_with_context()] == [first.id, last.id]


@for_each("number", [0, 1, 12])
def test_waiting_agents_cost_one_question_per_kind_however_many(
    begin: Begin, store: Store, space: str, number: int
) -> None:
    """The store is asked at most once about each kind, and about nothing else."""
    with begin() as uow:
        for each in range(number):
            _, _, task = _plan(uow)
            _waiting(uow, f"agent-{each}", task_id=task.id)
        uow.commit()
    counting = WrappedStore(store, Counting)
    with unit_of_work(counting, space, write=False) as uow:
        assert len(uow.agents.waiting_with_context()) == number
        asked = dict(uow.session.asked)
    kinds = [AGENTS, TASKS, PHASES, INITIATIVES] if number else [AGENTS]
    assert asked == {kind.name: 1 for kind in kinds}
