"""Named questions about messages, conversations, chats and logs."""

import pytest

from herdbook.domain.conversation import (
    ChatMessage,
    ChatRole,
    ChatSession,
    ChatStatus,
    ChatTarget,
    Conversation,
    ConversationStatus,
    LogChunk,
    Message,
    MessageStatus,
    Party,
)
from herdbook.domain.entity import evolve
from herdbook.domain.errors import NotFound
from herdbook.ports.engine.dictionary import (
    AGENTS,
    CHAT_SESSIONS,
    CONVERSATIONS,
    INITIATIVES,
    LOG_CHUNKS,
    MESSAGES,
)
from herdbook.ports.engine.query import find
from herdbook.ports.engine.store import Store
from herdbook.ports.unit_of_work.unit_of_work import unit_of_work
from tests.contract.rows import make
from tests.contract.turns import Begin, in_turn
from tests.contract.wrapped import Counting, WrappedStore

PENDING, READ, RESPONDED = MessageStatus
AGENT, USER = Party


def _to_user(**given: object) -> Message:
    return Message(sender_type=AGENT, sender_id="agt_1", recipient_type=USER, content="x", **given)


def _to_agent(recipient_id: str, **given: object) -> Message:
    return Message(
        sender_type=USER, recipient_type=AGENT, recipient_id=recipient_id, content="x", **given
    )


def test_messages_pending_for_the_user_come_oldest_first(begin: Begin) -> None:
    """Neither what was read nor what agents were sent is among them."""
    with begin(write=False) as uow:
        assert uow.messages.pending_for_user() == []
    rows = [_to_user(), _to_user(status=READ), _to_agent("agt_1"), _to_user()]
    first, _, _, fourth = in_turn(begin, MESSAGES, rows)
    with begin(write=False) as uow:
        assert uow.messages.pending_for_user() == [first, fourth]


def test_messages_pending_for_an_agent_are_its_own_oldest_first(begin: Begin) -> None:
    """Neither what was read nor what others were sent is among them."""
    rows = [
        _to_agent("agt_1"),
        _to_agent("agt_2"),
        _to_agent("agt_1", status=RESPONDED),
        _to_user(),
        _to_agent("agt_1"),
    ]
    first, *_, last = in_turn(begin, MESSAGES, rows)
    with begin(write=False) as uow:
        assert uow.messages.pending_for_agent("agt_1") == [first, last]
        assert uow.messages.pending_for_agent("agt_3") == []


def test_messages_that_require_a_response_wait_until_they_have_one(begin: Begin) -> None:
    """Reading is not answering; the oldest comes first, read or not."""
    with begin(write=False) as uow:
        assert uow.messages.requiring_response() == []
    rows = [
        _to_user(requires_response=True, status=READ),
        _to_user(),
        _to_user(requires_response=True, status=RESPONDED),
        _to_agent("agt_1", requires_response=True),
        _to_user(requires_response=True, status=READ),
    ]
    first, _, _, fourth, fifth = in_turn(begin, MESSAGES, rows)
    with begin(write=False) as uow:
        assert uow.messages.requiring_response() == [first, fourth, fifth]


def test_replies_to_a_message_come_oldest_first(begin: Begin) -> None:
    """Replies to replies are not among them."""
    parents = [None, "msg_99", "msg_98", "msg_99"]
    rows = [_to_user(parent_message_id=parent) for parent in parents]
    question, first, nested, second = in_turn(begin, MESSAGES, rows)
    with begin(write=False) as uow:
        assert uow.messages.replies(question.id) == [first, second]
        assert uow.messages.replies(first.id) == [nested]
        assert uow.messages.replies(nested.id) == []


def _agents(begin: Begin, number: int) -> list[str]:
    with begin() as uow:
        agents = [make(uow, AGENTS).id for _ in range(number)]
        uow.commit()
    return agents


def test_conversations_pending_for_an_agent_come_oldest_first(begin: Begin) -> None:
    """Neither what it answered nor what it asked is among them."""
    one, two, three = _agents(begin, 3)
    answered = ConversationStatus.ANSWERED
    rows = [
        Conversation(from_agent_id=two, to_agent_id=one, question="x"),
        Conversation(from_agent_id=one, to_agent_id=two, question="x"),
        Conversation(from_agent_id=two, to_agent_id=one, question="x", status=answered),
        Conversation(from_agent_id=three, to_agent_id=one, question="x"),
    ]
    first, _, _, fourth = in_turn(begin, CONVERSATIONS, rows)
    with begin(write=False) as uow:
        assert uow.conversations.pending_for(one) == [first, fourth]
        assert uow.conversations.pending_for(three) == []


def test_an_answered_conversation_no_longer_waits(begin: Begin) -> None:
    """The answer is kept with the question; a question nobody asked cannot be answered."""
    with begin() as uow:
        asked = make(uow, CONVERSATIONS)
        uow.commit()
    with begin() as uow:
        answered = uow.conversations.answer(asked.id, "Forty-two")
        with pytest.raises(NotFound):
            uow.conversations.answer("cnv_missing", "x")
        uow.commit()
    assert answered == evolve(
        asked,
        answer="Forty-two",
        status=ConversationStatus.ANSWERED,
        updated_at=answered.updated_at,
        version=2,
    )
    with begin(write=False) as uow:
        assert uow.conversations.get(asked.id) == answered
        assert uow.conversations.pending_for(asked.to_agent_id) == []


def test_conversations_by_sender_come_oldest_first(begin: Begin) -> None:
    """Answered or not; what others asked is not among them."""
    one, two, three = _agents(begin, 3)
    rows = [
        Conversation(from_agent_id=one, to_agent_id=two, question="x", status="answered"),
        Conversation(from_agent_id=two, to_agent_id=one, question="x"),
        Conversation(from_agent_id=one, to_agent_id=three, question="x"),
    ]
    first, _, third = in_turn(begin, CONVERSATIONS, rows)
    with begin(write=False) as uow:
        assert uow.conversations.by_sender(one) == [first, third]
        assert uow.conversations.by_sender(three) == []


def test_conversations_of_many_senders_are_counted_in_one_question(
    begin: Begin, store: Store, space: str
) -> None:
    """Each sender asked about has its number, 0 where there is nothing to count."""
    one, two, three = _agents(begin, 3)
    with begin() as uow:
        senders = [one, two, one, three]
        uow.conversations.add_all(
            [Conversation(from_agent_id=s, to_agent_id=two, question="x") for s in senders]
        )
        uow.commit()
    counting = WrappedStore(store, Counting)
    with unit_of_work(counting, space, write=False) as uow:
        counts = uow.conversations.count_by_senders([two, one, "agt_missing", one])
        assert counts == {two: 1, one: 2, "agt_missing": 0}
        assert uow.conversations.count_by_senders([]) == {}
        assert dict(uow.session.asked) == {CONVERSATIONS.name: 1}


def test_the_active_chat_about_a_target_is_the_newest_open_one(begin: Begin) -> None:
    """Closed chats, and targets of another type under the same id, do not count."""
    with begin() as uow:
        initiative = make(uow, INITIATIVES)
        uow.commit()
    phase, task = ChatTarget
    plan = [
        (phase, "x", ChatStatus.ACTIVE),
        (phase, "x", ChatStatus.ACTIVE),
        (phase, "x", ChatStatus.CLOSED),
        (task, "x", ChatStatus.ACTIVE),
        (phase, "y", ChatStatus.CLOSED),
    ]
    rows = [
        ChatSession(initiative_id=initiative.id, target_type=kind, target_id=key, status=status)
        for kind, key, status in plan
    ]
    _, newest, _, other, _ = in_turn(begin, CHAT_SESSIONS, rows)
    with begin(write=False) as uow:
        assert uow.chat_sessions.active_for_target(phase, "x") == newest
        assert uow.chat_sessions.active_for_target(task, "x") == other
        assert uow.chat_sessions.active_for_target(phase, "y") is None


def test_the_active_chat_of_an_agent_is_the_newest_open_one(begin: Begin) -> None:
    """Closed chats and other agents' do not count."""
    with begin() as uow:
        initiative = make(uow, INITIATIVES)
        one, two, three = (make(uow, AGENTS) for _ in range(3))
        uow.commit()
    plan = [(one, "active"), (one, "active"), (one, "closed"), (two, "active"), (three, "closed")]
    rows = [
        ChatSession(
            initiative_id=initiative.id,
            target_type="task",
            target_id="x",
            agent_id=agent.id,
            status=status,
        )
        for agent, status in plan
    ]
    _, newest, _, other, _ = in_turn(begin, CHAT_SESSIONS, rows)
    with begin(write=False) as uow:
        assert uow.chat_sessions.active_for_agent(one.id) == newest
        assert uow.chat_sessions.active_for_agent(two.id) == other
        assert uow.chat_sessions.active_for_agent(three.id) is None


def test_a_chat_is_told_in_the_order_it_was_said(begin: Begin) -> None:
    """Within one transaction and over several; other chats are not heard."""
    with begin() as uow:
        here, there, empty = (make(uow, CHAT_SESSIONS) for _ in range(3))
        uow.commit()
    said = []
    for turn in range(2):
        with begin() as uow:
            for word in range(12):
                chat = there if word == 5 else here
                text = f"{turn}.{word}"
                line = ChatMessage(chat_session_id=chat.id, role=ChatRole.USER, content=text)
                said.append(uow.chat_sessions.post(line))
            uow.commit()
    with begin(write=False) as uow:
        assert uow.chat_sessions.messages(here.id) == [
            each for each in said if each.chat_session_id == here.id
        ]
        assert uow.chat_sessions.messages(empty.id) == []


def _chunk(agent_id: str, session_number: int, content: str = "x") -> LogChunk:
    return LogChunk(
        agent_id=agent_id, agent_name="otter", session_number=session_number, content=content
    )


def test_log_chunks_keep_the_order_they_were_appended_in(begin: Begin) -> None:
    """Within one transaction and over several, for more of them than one digit can count."""
    appended = []
    for turn in range(2):
        with begin() as uow:
            for number in range(20):
                chunk = _chunk("agt_1", 1, f"{turn}.{number}")
                appended.append(uow.log_chunks.append(chunk))
            uow.commit()
    with begin(write=False) as uow:
        assert uow.log_chunks.of_agent("agt_1") == appended


def test_log_chunks_of_an_agent_go_by_session_first(begin: Begin) -> None:
    """A late piece of an earlier session stands with its session; pages go on behind a piece."""
    with begin() as uow:
        late, early, other = uow.log_chunks.add_all(
            [_chunk("agt_1", 2), _chunk("agt_1", 1), _chunk("agt_2", 1)]
        )
        uow.commit()
    with begin(write=False) as uow:
        assert uow.log_chunks.of_agent("agt_1") == [early, late]
        assert uow.log_chunks.of_agent("agt_1", limit=1) == [early]
        assert uow.log_chunks.of_agent("agt_1", limit=1, after=early) == [late]
        assert uow.log_chunks.of_agent("agt_2") == [other]
        assert uow.log_chunks.of_agent("agt_3") == []


def test_log_chunks_of_many_agents_come_in_one_question(
    begin: Begin, store: Store, space: str
) -> None:
    """Each agent asked about has its log in order, an empty one where it has none."""
    with begin() as uow:
        plan = [("agt_2", 1), ("agt_1", 2), ("agt_3", 1), ("agt_1", 1), ("agt_2", 1)]
        a, b, _, d, e = uow.log_chunks.add_all([_chunk(*each) for each in plan])
        uow.commit()
    counting = WrappedStore(store, Counting)
    with unit_of_work(counting, space, write=False) as uow:
        logs = uow.log_chunks.of_agents(["agt_1", "agt_2", "agt_4"])
        assert logs == {"agt_1": [d, b], "agt_2": [a, e], "agt_4": []}
        assert uow.log_chunks.of_agents([]) == {}
        assert dict(uow.session.asked) == {LOG_CHUNKS.name: 1}


def test_the_session_count_is_the_number_of_the_last_session(begin: Begin) -> None:
    """However many pieces each session has, and 0 where there is no log."""
    with begin() as uow:
        plan = [("agt_1", 1), ("agt_1", 3), ("agt_1", 2), ("agt_1", 3), ("agt_2", 12)]
        uow.log_chunks.add_all([_chunk(*each) for each in plan])
        uow.commit()
    with begin(write=False) as uow:
        counts = [uow.log_chunks.session_count(agent) for agent in ("agt_1", "agt_2", "agt_3")]
    assert counts == [3, 12, 0]


def test_the_log_of_an_agent_is_removed_whole(begin: Begin) -> None:
    """Removing says how many pieces there were; other agents' logs stay."""
    with begin() as uow:
        plan = [("agt_1", 1), ("agt_2", 1), ("agt_1", 2)]
        _, kept, _ = uow.log_chunks.add_all([_chunk(*each) for each in plan])
        uow.commit()
    with begin() as uow:
        assert uow.log_chunks.remove_of_agent("agt_1") == 2
        assert uow.log_chunks.remove_of_agent("agt_1") == 0
        uow.commit()
    with begin(write=False) as uow:
        assert uow.select(find(LOG_CHUNKS)) == [kept]


def test_a_log_outlives_its_agent(begin: Begin) -> None:
    """Removing an agent leaves what it printed, under the name it had."""
    with begin() as uow:
        agent = make(uow, AGENTS)
        chunk = uow.log_chunks.append(_chunk(agent.id, 1))
        uow.commit()
    with begin() as uow:
        uow.agents.remove(agent.id)
        uow.commit()
    with begin(write=False) as uow:
        assert uow.agents.find(agent.id) is None
        assert uow.log_chunks.of_agent(agent.id) == [chunk]
