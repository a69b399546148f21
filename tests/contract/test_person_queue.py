"""What waits for a person, on every store: each entry until the operation it names was called."""

from datetime import timedelta
from typing import Any

import pytest

from herdbook.domain.agents.model import Agent, AgentStatus
from herdbook.domain.conversation import MessageStatus
from herdbook.domain.entity import evolve
from herdbook.domain.errors import InvalidValue, StaleWrite
from herdbook.domain.plan.model import (
    Errand,
    ExecutionMode,
    Initiative,
    InitiativeStatus,
    Phase,
    PhaseStatus,
    Project,
    ProposalTarget,
    Task,
    TaskStatus,
)
from herdbook.domain.record.events import SessionSetup
from herdbook.domain.record.model import Account
from herdbook.ports.engine.store import Store
from herdbook.ports.unit_of_work.run import read, run
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services import messaging
from herdbook.services.agents import accounts, agent_lifecycle, person_queue
from herdbook.services.agents.person_queue import QueueEntry, record_waiting, work_waiting
from herdbook.services.journal.prune import prune
from herdbook.services.plan import claims, phases, proposals
from herdbook.services.record import grading
from tests.contract.claims import do
from tests.contract.proposed import add_plan, propose
from tests.contract.turns import Begin


def waiting(begin: Begin) -> list[QueueEntry]:
    """What waits for a person."""
    with begin(write=False) as uow:
        return work_waiting(uow)


def kinds(begin: Begin) -> list[str]:
    """The kinds of what waits for a person, oldest first."""
    return [each.kind for each in waiting(begin)]


def add_agent(begin: Begin, name: str = "otter", **fields: Any) -> Agent:
    with begin() as uow:
        agent: Agent = uow.agents.add(Agent(name=name, **fields))
        uow.commit()
    return agent


def test_nothing_waits_in_an_empty_space(begin: Begin) -> None:
    """Nor for agents that work."""
    add_agent(begin, status=AgentStatus.RUNNING)
    assert waiting(begin) == []


def test_a_question_waits_until_it_is_answered_and_the_agent_goes_on(begin: Begin) -> None:
    """The answer is a message to the agent; one that waits for nobody is not answered."""
    agent = add_agent(begin)
    questions = [{"question": "Which port?", "options": ["8080", {"label": "9090"}]}]
    do(begin, agent_lifecycle.wait, agent.id, questions)
    (entry,) = waiting(begin)
    assert (entry.kind, entry.agent, entry.text) == ("question", "otter", "Which port?")
    assert [each.label for each in entry.actions] == ["8080", "9090", "Reply"]
    asked = entry.asked
    assert entry.actions[0].params == {"agent": agent.id, "content": "8080", "asked": asked}
    assert entry.actions[2].params == {"agent": agent.id, "asked": asked}
    assert entry.actions[2].text == "content"
    do(begin, agent_lifecycle.answer, agent.id, "8080", asked=asked)
    assert waiting(begin) == []
    with begin(write=False) as uow:
        assert uow.agents.get(agent.id).status is AgentStatus.IDLE
        (message,) = messaging.inbox(uow, agent.id)
    assert message.content == "8080"
    with pytest.raises(InvalidValue, match="waits for nobody"):
        do(begin, agent_lifecycle.answer, agent.id, "again")


def test_an_answer_reaches_the_question_that_was_read_and_no_other(begin: Begin) -> None:
    """Also if the agent asks the same words again; an answer that names none reaches any."""
    agent = add_agent(begin)
    numbers = []
    for text in ("May I run the tests?", "May I drop the table?", "May I drop the table?"):
        do(begin, agent_lifecycle.wait, agent.id, [{"question": text, "options": ["Yes"]}])
        (entry,) = waiting(begin)
        numbers.append(entry.asked)
        if numbers[1:]:
            do(begin, agent_lifecycle.answer, agent.id, "Yes", asked=entry.asked)
            do(begin, agent_lifecycle.wait, agent.id, [{"question": text, "options": ["Yes"]}])
            with pytest.raises(StaleWrite, match="Nothing was sent") as refused:
                do(begin, agent_lifecycle.answer, agent.id, "Yes", asked=entry.asked)
            assert refused.value.version == entry.asked
    assert len(set(numbers)) == 3
    do(begin, agent_lifecycle.answer, agent.id, "No")
    assert waiting(begin) == []
    with begin(write=False) as uow:
        assert [each.content for each in messaging.inbox(uow, agent.id)] == ["Yes", "Yes", "No"]


def test_a_question_stays_the_same_while_other_things_of_its_agent_change(begin: Begin) -> None:
    """However often; it waits since it was asked, and can be answered as it was read."""
    agent = add_agent(begin)
    do(begin, agent_lifecycle.wait, agent.id, ["Which port?"])
    before = waiting(begin)
    for number in range(2 * agent_lifecycle.FEW_ENTRIES):
        with begin() as uow:
            uow.agents.save(evolve(uow.agents.get(agent.id), model=f"model {number}"))
            uow.commit()
    assert waiting(begin) == before
    do(begin, agent_lifecycle.answer, agent.id, "8080", asked=before[0].asked)
    assert waiting(begin) == []


def test_a_question_whose_entry_was_folded_can_be_answered(
    store: Store, space: str, begin: Begin
) -> None:
    """It is not known then which question is meant, so none is named; a number is refused."""
    agent = add_agent(begin)
    do(begin, agent_lifecycle.wait, agent.id, ["Which port?"])
    (before,) = waiting(begin)
    prune(store, space, read(store, space, lambda uow: uow.journal.last()))
    (entry,) = waiting(begin)
    assert (entry.asked, entry.since) == (None, before.since)
    with pytest.raises(StaleWrite):
        do(begin, agent_lifecycle.answer, agent.id, "8080", asked=before.asked)
    assert entry.actions[0].params == {"agent": agent.id}
    do(begin, agent_lifecycle.answer, agent.id, "8080")
    assert waiting(begin) == []


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """No more than two entries of a sort are told, and rows are read two at a time."""
    monkeypatch.setattr(person_queue, "LIMIT", 2)
    monkeypatch.setattr(person_queue, "PAGE", 2)


@pytest.mark.usefixtures("few")
def test_what_waits_for_nobody_hides_nothing(begin: Begin) -> None:
    """However much of it is older: only what waits counts towards the most that is told."""
    seen = [add_agent(begin, f"old-{at}", status=AgentStatus.CRASHED) for at in range(5)]
    for each in seen:
        do(begin, agent_lifecycle.dismiss, each.id)
    lynx = add_agent(begin, "lynx", status=AgentStatus.CRASHED)
    with begin() as uow:
        uow.tasks.add_all([Task(name=f"{at}", status=TaskStatus.BLOCKED) for at in range(5)])
        failed = uow.tasks.add(Task(name="parse", status=TaskStatus.BLOCKED, retry_count=3))
        uow.initiatives.add_all([Initiative(name=f"{at}") for at in range(5)])
        goal = uow.initiatives.add(Initiative(name="goal"))
        uow.phases.add_all([Phase(initiative_id=goal.id, name=f"{at}") for at in range(5)])
        handed_in = PhaseStatus.PENDING_REVIEW
        phase = uow.phases.add(Phase(initiative_id=goal.id, name="last", status=handed_in))
        uow.commit()
    for number in range(5):
        needed = {"sender_id": lynx.id, "recipient_id": seen[0].id, "requires_response": True}
        between = do(begin, messaging.send, f"port {number}?", **needed)
        do(begin, messaging.mark, between.id, MessageStatus.READ)
        do(begin, messaging.send, f"hello {number}", sender_id=lynx.id)
    asked = do(begin, messaging.send, "merge?", sender_id=lynx.id, requires_response=True)
    do(begin, messaging.read, asked.id)
    found = waiting(begin)
    subjects = {each.subject for each in found if each.kind != "message"}
    assert subjects == {lynx.id, failed.id, phase.id, asked.id}
    assert not any(each.cut for each in found if each.kind != "message")


@pytest.mark.usefixtures("few")
def test_more_of_a_sort_than_is_told_is_said(begin: Begin) -> None:
    """By the last that is told of it."""
    for at in range(2):
        add_agent(begin, f"agent-{at}", status=AgentStatus.CRASHED)
    assert [each.cut for each in waiting(begin)] == [False, False]
    add_agent(begin, "agent-2", status=AgentStatus.CRASHED)
    assert [(each.agent, each.cut) for each in waiting(begin)] == [
        ("agent-0", False),
        ("agent-1", True),
    ]


@pytest.mark.parametrize(
    "asked",
    [None, [], ["Merge?", "And delete?"], "Merge?", {"text": "Merge?"}, [3, {"options": 5}]],
)
def test_questions_of_any_form_are_shown(begin: Begin, asked: Any) -> None:
    """Whatever an agent wrote; several questions have no choices."""
    agent = add_agent(begin)
    do(begin, agent_lifecycle.wait, agent.id, asked)
    (entry,) = waiting(begin)
    assert entry.text
    assert [each.label for each in entry.actions] == ["Reply"]


def test_messages_wait_until_they_are_read_or_answered(begin: Begin) -> None:
    """One that needs an answer waits for it, read or not; those to agents never wait."""
    agent, other = add_agent(begin), add_agent(begin, "lynx")
    told = do(begin, messaging.send, "built", sender_id=agent.id)
    asked = do(begin, messaging.send, "merge?", sender_id=agent.id, requires_response=True)
    do(begin, messaging.send, "hi", sender_id=agent.id, recipient_id=other.id)
    needed = {"sender_id": agent.id, "recipient_id": other.id, "requires_response": True}
    between = do(begin, messaging.send, "port?", **needed)
    do(begin, messaging.mark, between.id, MessageStatus.READ)
    assert [(each.kind, each.subject) for each in waiting(begin)] == [
        ("message", told.id),
        ("question", asked.id),
    ]
    do(begin, messaging.read, told.id)
    do(begin, messaging.read, asked.id)
    assert [each.subject for each in waiting(begin)] == [asked.id]
    do(begin, messaging.reply, asked.id, "yes")
    assert waiting(begin) == []


def test_a_phase_waits_for_its_approval_when_nothing_else_keeps_it(begin: Begin) -> None:
    """Not behind another phase, not without tasks, and never in a yolo initiative."""
    with begin() as uow:
        mode = ExecutionMode.REVIEW_PER_PHASE
        initiative = uow.initiatives.add(Initiative(name="login", execution_mode=mode))
        first, second, empty = uow.phases.add_all(
            [Phase(initiative_id=initiative.id, name=name) for name in ("one", "two", "empty")]
        )
        uow.tasks.add_all([Task(name="x", phase_id=each.id) for each in (first, second)])
        uow.phases.add_dependency(second.id, first.id)
        free = uow.initiatives.add(Initiative(name="free", execution_mode=ExecutionMode.YOLO))
        phase = uow.phases.add(Phase(initiative_id=free.id, name="open"))
        uow.tasks.add(Task(name="x", phase_id=phase.id))
        uow.commit()
    assert empty.id
    (entry,) = waiting(begin)
    assert (entry.kind, entry.subject) == ("approval", first.id)
    assert entry.actions[0].params == {"phase_ids": [first.id]}
    do(begin, phases.approve, [first.id])
    assert waiting(begin) == []
    with begin() as uow:
        handed_in = evolve(uow.phases.get(first.id), status=PhaseStatus.PENDING_REVIEW)
        uow.phases.save(handed_in)
        uow.commit()
    assert kinds(begin) == ["review"]


def test_a_proposal_waits_until_it_is_decided_on(begin: Begin) -> None:
    """Of an initiative that is not closed."""
    plan = add_plan(begin)
    proposal = propose(begin, plan, ProposalTarget.TASK, title="split it")
    (entry,) = waiting(begin)
    assert (entry.kind, entry.subject) == ("proposal", proposal)
    assert entry.agent == plan.agent.name
    do(begin, proposals.dismiss, proposal)
    assert waiting(begin) == []


def test_what_was_handed_in_waits_for_its_review(begin: Begin) -> None:
    """An initiative, and errands; the oldest first."""
    with begin() as uow:
        project = uow.projects.add(Project(name="app", url="x"))
        for status in ("pending_review", "conflict", "active", "merged"):
            one = Errand(description="typo", branch=status, project_id=project.id, status=status)
            uow.errands.add(one)
        status = InitiativeStatus.PENDING_REVIEW
        uow.initiatives.add(Initiative(name="login", status=status))
        uow.commit()
    found = waiting(begin)
    assert [each.kind for each in found] == ["review"] * 3
    assert sorted(each.since for each in found) == [each.since for each in found]


def test_a_task_that_failed_too_often_and_a_crashed_agent_wait(begin: Begin) -> None:
    """A task that a person blocked is known to that person."""
    agent = add_agent(begin, status=AgentStatus.CRASHED)
    with begin() as uow:
        failed = Task(name="parse", status=TaskStatus.BLOCKED, retry_count=3)
        task = uow.tasks.add(failed)
        uow.tasks.add(Task(name="by hand", status=TaskStatus.BLOCKED))
        uow.commit()
    assert kinds(begin) == ["crashed", "failed"]
    do(begin, agent_lifecycle.dismiss, agent.id)
    do(begin, claims.retry, task.id)
    assert waiting(begin) == []


def test_halted_agents_and_exhausted_accounts_wait_in_the_record(store: Store, space: str) -> None:
    """Until they are reinstated, freed, or the time of the exhaustion is over."""
    record = space.replace("work", "record", 1)
    crew = {"otter": SessionSetup()}

    def fill(uow: UnitOfWork) -> str:
        grading.report_bug(uow, "otter", None, crew=crew)
        account = uow.accounts.add(Account(email="me@example.com"))
        over = uow.accounts.add(Account(email="you@example.com"))
        accounts.exhaust(uow, account.id)
        accounts.exhaust(uow, over.id, until=uow.now - timedelta(hours=1))
        return account.id

    account_id = run(store, record, fill)
    found = {each.kind: each.subject for each in read(store, record, record_waiting)}
    assert found == {"halted": "otter", "exhausted": account_id}
    run(store, record, grading.reinstate, "otter", 1, crew=crew)
    run(store, record, accounts.free, account_id)
    assert read(store, record, record_waiting) == []
