"""Questions between agents, and chats about the plan, on every store."""

import pytest

from herdbook.domain.conversation import (
    ChatMessage,
    ChatRole,
    ChatStatus,
    ChatTarget,
    Conversation,
    ConversationStatus,
)
from herdbook.domain.errors import AlreadyExists, InvalidValue, NotFound, UnknownReference
from herdbook.domain.plan.model import Phase, Task
from herdbook.ports.engine.dictionary import CHANGE_SETS, INITIATIVES, PHASES, TASKS
from herdbook.services import messaging
from tests.contract.claims import add_agents, do
from tests.contract.rows import make
from tests.contract.turns import Begin


def test_an_agent_hears_the_oldest_question_it_has_not_answered(begin: Begin) -> None:
    """One after the other, and nothing that others were asked."""
    one, two, asked = add_agents(begin, 3)
    with begin(write=False) as uow:
        assert messaging.listen(uow, asked) is None
    first, second = (do(begin, messaging.ask, agent, asked, agent) for agent in (one, two))
    other = do(begin, messaging.ask, asked, one, "and you?")
    for question, text in ((first, "yes"), (second, "no")):
        with begin(write=False) as uow:
            assert messaging.listen(uow, asked) == question
            assert messaging.find_answer(uow, question.id) is None
        answer = do(begin, messaging.answer, question.id, text)
        assert (answer.answer, answer.status) == (text, ConversationStatus.ANSWERED)
        with begin(write=False) as uow:
            assert messaging.find_answer(uow, question.id) == answer
    with begin(write=False) as uow:
        assert messaging.listen(uow, asked) is None
        assert messaging.listen(uow, one) == other
        with pytest.raises(NotFound):
            messaging.listen(uow, "agt_missing")


def test_a_question_says_what_it_is_about(begin: Begin) -> None:
    """The initiative, the phase and the task are kept with it; they must be there."""
    one, other = add_agents(begin, 2)
    with begin() as uow:
        about = {
            "initiative_id": make(uow, INITIATIVES).id,
            "phase_id": make(uow, PHASES).id,
            "task_id": make(uow, TASKS).id,
        }
        uow.commit()
    question = do(begin, messaging.ask, one, other, "?", **about)
    assert question == Conversation(
        id=question.id,
        from_agent_id=one,
        to_agent_id=other,
        question="?",
        created_at=question.created_at,
        updated_at=question.created_at,
        version=1,
        **about,
    )
    with begin() as uow, pytest.raises(UnknownReference):
        messaging.ask(uow, one, other, "?", task_id="tsk_missing")


def test_a_question_is_answered_once(begin: Begin) -> None:
    """The second answer is refused, and the first one stands."""
    one, other = add_agents(begin, 2)
    question = do(begin, messaging.ask, one, other, "?")
    first = do(begin, messaging.answer, question.id, "yes")
    with begin() as uow:
        with pytest.raises(AlreadyExists, match="answer"):
            messaging.answer(uow, question.id, "no")
        uow.commit()
    with begin(write=False) as uow:
        assert uow.conversations.get(question.id) == first


def test_an_agent_cannot_ask_itself_or_nobody(begin: Begin) -> None:
    """It would never hear an answer."""
    (agent,) = add_agents(begin)
    with begin() as uow:
        with pytest.raises(InvalidValue, match="to_agent_id"):
            messaging.ask(uow, agent, agent, "?")
        with pytest.raises(UnknownReference, match="agt_missing"):
            messaging.ask(uow, agent, "agt_missing", "?")


def _targets(begin: Begin) -> tuple[str, Phase, Task, Task]:
    """An initiative, a phase of it, a task in that and a task of the initiative alone."""
    with begin() as uow:
        initiative = make(uow, INITIATIVES)
        phase = make(uow, PHASES, initiative_id=initiative.id)
        inner = make(uow, TASKS, phase_id=phase.id)
        loose = make(uow, TASKS, initiative_id=initiative.id)
        uow.commit()
    return initiative.id, phase, inner, loose


def test_a_chat_is_about_a_phase_or_a_task_of_an_initiative(begin: Begin) -> None:
    """The initiative is found from its target, which must be there."""
    initiative_id, phase, inner, loose = _targets(begin)
    kinds = [(ChatTarget.PHASE, phase), (ChatTarget.TASK, inner), (ChatTarget.TASK, loose)]
    for kind, target in kinds:
        chat = do(begin, messaging.open_chat, kind, target.id)
        assert (chat.target_type, chat.target_id) == (kind, target.id)
        assert (chat.initiative_id, chat.status) == (initiative_id, ChatStatus.ACTIVE)
    with begin() as uow:
        stray = make(uow, TASKS)
        for kind in ChatTarget:
            with pytest.raises(NotFound):
                messaging.open_chat(uow, kind, "missing")
        with pytest.raises(InvalidValue, match="target_id"):
            messaging.open_chat(uow, ChatTarget.TASK, stray.id)


def test_a_target_has_one_open_chat(begin: Begin) -> None:
    """Opening it again gives the same one; once it is closed, another."""
    _, phase, inner, _ = _targets(begin)
    first = do(begin, messaging.open_chat, ChatTarget.PHASE, phase.id)
    assert do(begin, messaging.open_chat, ChatTarget.PHASE, phase.id) == first
    assert do(begin, messaging.open_chat, ChatTarget.TASK, inner.id).id != first.id
    closed = do(begin, messaging.close_chat, first.id)
    assert closed.status is ChatStatus.CLOSED
    assert do(begin, messaging.close_chat, first.id) == closed
    assert do(begin, messaging.open_chat, ChatTarget.PHASE, phase.id).id != first.id


def test_the_first_agent_that_comes_takes_part_in_a_chat(begin: Begin) -> None:
    """Whoever comes later finds it taken."""
    one, other = add_agents(begin, 2)
    _, phase, *_ = _targets(begin)
    agents = [None, one, other]
    chats = [
        do(begin, messaging.open_chat, ChatTarget.PHASE, phase.id, agent_id=each) for each in agents
    ]
    assert [chat.agent_id for chat in chats] == [None, one, one]
    assert len({chat.id for chat in chats}) == 1


def test_what_is_said_in_a_chat_is_kept_in_order(begin: Begin) -> None:
    """By whom, and what it led to; a page at a time."""
    initiative_id, phase, *_ = _targets(begin)
    chat = do(begin, messaging.open_chat, ChatTarget.PHASE, phase.id)
    with begin() as uow:
        changes = make(uow, CHANGE_SETS, initiative_id=initiative_id)
        words = [messaging.post_to_chat(uow, chat.id, role, role) for role in ChatRole]
        uow.commit()
    last = do(
        begin, messaging.post_to_chat, chat.id, ChatRole.ASSISTANT, "done", change_set_id=changes.id
    )
    assert last == ChatMessage(
        id=last.id,
        chat_session_id=chat.id,
        role=ChatRole.ASSISTANT,
        content="done",
        change_set_id=changes.id,
        created_at=last.created_at,
    )
    with begin(write=False) as uow:
        assert messaging.chat_history(uow, chat.id) == [*words, last]
        assert messaging.chat_history(uow, chat.id, limit=2, after=words[0].id) == words[1:]


def test_nothing_is_said_in_a_closed_chat(begin: Begin) -> None:
    """Nor in one that is not there; what was said stays."""
    _, phase, *_ = _targets(begin)
    chat = do(begin, messaging.open_chat, ChatTarget.PHASE, phase.id)
    said = do(begin, messaging.post_to_chat, chat.id, ChatRole.USER, "x")
    do(begin, messaging.close_chat, chat.id)
    with begin() as uow:
        with pytest.raises(InvalidValue, match="closed"):
            messaging.post_to_chat(uow, chat.id, ChatRole.USER, "y")
        with pytest.raises(NotFound):
            messaging.post_to_chat(uow, "cht_missing", ChatRole.USER, "y")
        uow.commit()
    with begin(write=False) as uow:
        assert messaging.chat_history(uow, chat.id) == [said]
