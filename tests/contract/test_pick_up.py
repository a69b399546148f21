"""The order in which agents would pick up a plan, on every store."""

from typing import Any

import pytest

from herdbook.domain.agents.model import Agent
from herdbook.domain.entity import evolve
from herdbook.domain.errors import InvalidValue
from herdbook.domain.plan.model import InitiativeStatus, PhaseStatus, Task, TaskStatus
from herdbook.ports.world.halts import NO_HALTS
from herdbook.services.plan import claims, diagram
from tests.contract.claims import add_initiative, add_phase, add_tasks
from tests.contract.turns import Begin


def steps(begin: Begin, **asked: Any) -> tuple[list[list[str]], list[str]]:
    """The names of the tasks step by step, and of those that wait for a person."""
    with begin(write=False) as uow:
        found = diagram.build_diagram(uow, **asked)
    assert found.pick_up is not None
    names = {node.task.id: node.task.name for node in found.nodes}
    picked = [[names[key] for key in step] for step in found.pick_up.steps]
    return picked, [names[key] for key in found.pick_up.stuck]


def test_agents_pick_up_in_the_order_of_claims(begin: Begin) -> None:
    """What is held comes first; the first that is not is what the next claim gives."""
    phase = add_phase(begin, add_initiative(begin), PhaseStatus.APPROVED)
    add_tasks(
        begin, *(Task(name=name, phase_id=phase.id, order=at) for at, name in enumerate("abc"))
    )
    assert steps(begin, agents=1) == ([["a"], ["b"], ["c"]], [])
    with begin() as uow:
        agent = uow.agents.add(Agent(name="otter"))
        claims.claim(uow, agent.id, halts=NO_HALTS)
        uow.commit()
    assert steps(begin, agents=2) == ([["a", "b"], ["c"]], [])
    with begin() as uow:
        found = diagram.build_diagram(uow, agents=2).pick_up
        claimed = claims.claim(uow, uow.agents.add(Agent(name="lynx")).id, halts=NO_HALTS)
    assert claimed is not None
    assert found is not None
    assert (claimed.task.name, claimed.task.id) == ("b", found.next)


def test_nobody_picks_up_what_a_person_has_to_decide(begin: Begin) -> None:
    """Phases to be approved, blocked tasks, and initiatives that are at rest."""
    approved = add_phase(begin, add_initiative(begin), PhaseStatus.APPROVED)
    pending = add_phase(begin, add_initiative(begin), PhaseStatus.PENDING)
    resting = add_initiative(begin)
    with begin() as uow:
        uow.initiatives.save(
            evolve(uow.initiatives.get(resting.id), status=InitiativeStatus.ARCHIVED)
        )
        uow.commit()
    add_tasks(
        begin,
        Task(name="a", phase_id=approved.id, order=1),
        Task(name="b", phase_id=approved.id, order=2, status=TaskStatus.BLOCKED),
        Task(name="c", phase_id=pending.id, order=3),
        Task(name="d", initiative_id=resting.id, order=4),
        Task(name="e", order=5),
    )
    assert steps(begin, agents=3) == ([["a", "e"]], ["b", "c", "d"])
    with pytest.raises(InvalidValue):
        steps(begin, agents=0)
