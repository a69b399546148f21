"""What an agent is told at the start of its session, on every store."""

from datetime import timedelta

from herdbook.domain.agents.model import Agent, AgentStatus
from herdbook.domain.conversation import Conversation
from herdbook.domain.entity import evolve
from herdbook.domain.plan.model import Task
from herdbook.ports.world.halts import NO_HALTS
from herdbook.services import messaging
from herdbook.services.agents.briefing import MOST_READY, MOST_WAITING, brief, forgotten_tasks
from herdbook.services.plan import claims
from tests.contract.turns import Begin


def test_it_says_what_the_agent_holds_and_how_long(begin: Begin) -> None:
    """Its task with the rest of its lease, and not what others hold."""
    with begin() as uow:
        otter, heron = uow.agents.add_all([Agent(name="otter"), Agent(name="heron")])
        uow.tasks.add_all([Task(name=f"task {number}", order=number) for number in range(3)])
        own = claims.claim(uow, otter.id, halts=NO_HALTS, ttl=timedelta(hours=1))
        other = claims.claim(uow, heron.id, halts=NO_HALTS)
        uow.commit()
    assert own is not None
    assert other is not None
    with begin(write=False) as uow:
        found = brief(uow, uow.agents.get(otter.id))
    (held,) = found.holds
    assert (held.task.id, held.is_review) == (own.task.id, False)
    assert held.left is not None
    assert timedelta(minutes=58) < held.left <= timedelta(hours=1)
    assert [each.name for each in found.ready] == ["task 2"]
    assert found.ready_count == 1


def test_it_has_the_first_questions_and_messages_with_their_senders(begin: Begin) -> None:
    """The oldest of each; the person is no agent, and what was answered waits no more."""
    with begin() as uow:
        otter, heron = uow.agents.add_all([Agent(name="otter"), Agent(name="heron")])
        asked = uow.conversations.add_all(
            [
                Conversation(
                    from_agent_id=heron.id, to_agent_id=otter.id, question=f"which {each}?"
                )
                for each in range(MOST_WAITING + 1)
            ]
        )
        messaging.answer(uow, asked[0].id, "this")
        messaging.send(uow, "from the person", recipient_id=otter.id)
        messaging.send(uow, "from heron", sender_id=heron.id, recipient_id=otter.id)
        messaging.send(uow, "to the person", sender_id=otter.id)
        uow.commit()
    with begin(write=False) as uow:
        found = brief(uow, uow.agents.get(otter.id))
    assert {each.row.id for each in found.questions} == {each.id for each in asked[1:]}
    assert {each.sender for each in found.questions} == {"heron"}
    assert {each.row.content: each.sender for each in found.messages} == {
        "from the person": None,
        "from heron": "heron",
    }


def test_somebody_unknown_is_told_only_what_is_ready(begin: Begin) -> None:
    """The first tasks and how many there are."""
    with begin() as uow:
        uow.tasks.add_all([Task(name=f"task {number}", order=number) for number in range(5)])
        uow.commit()
    with begin(write=False) as uow:
        found = brief(uow, None)
    assert (found.agent, found.holds, found.questions, found.messages) == (None, (), (), ())
    assert [each.name for each in found.ready] == [f"task {each}" for each in range(MOST_READY)]
    assert found.ready_count == 5


def test_an_agent_that_waits_for_a_person_has_forgotten_nothing(begin: Begin) -> None:
    """Who holds a task at the end of a turn is reminded, unless it said that it waits."""
    with begin() as uow:
        otter = uow.agents.add(Agent(name="otter"))
        assert forgotten_tasks(uow, otter) == ()
        uow.tasks.add(Task(name="parse"))
        assert claims.claim(uow, otter.id, halts=NO_HALTS) is not None
        uow.commit()
    with begin() as uow:
        found = uow.agents.get(otter.id)
        assert [each.task.name for each in forgotten_tasks(uow, found)] == ["parse"]
        waiting = uow.agents.save(evolve(found, status=AgentStatus.WAITING_FOR_INPUT))
        assert forgotten_tasks(uow, waiting) == ()
        assert forgotten_tasks(uow, None) == ()
