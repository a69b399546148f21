"""Messages and the threads they make, on every store."""

from collections.abc import Callable

import pytest

from herdbook.domain.conversation import (
    Message,
    MessageStatus,
    Party,
)
from herdbook.domain.entity import evolve
from herdbook.domain.errors import InvalidValue, NotFound
from herdbook.ports.engine.dictionary import MESSAGES
from herdbook.ports.engine.store import Store
from herdbook.ports.unit_of_work.unit_of_work import unit_of_work
from herdbook.services import messaging
from tests.cases import for_each
from tests.contract.claims import add_agents, do
from tests.contract.turns import Begin
from tests.contract.wrapped import Counting, WrappedStore

PENDING, READ, RESPONDED = MessageStatus
AGENT, USER = Party


def _get(begin: Begin, message: Message) -> Message:
    with begin(write=False) as uow:
        return uow.messages.get(message.id)


def _inbox(begin: Begin, agent_id: str | None = None, **options: object) -> list[Message]:
    with begin(write=False) as uow:
        return messaging.inbox(uow, agent_id, **options)


def test_a_message_goes_from_an_agent_or_the_person_to_the_other(begin: Begin) -> None:
    """Both sides, what it says and whether it wants an answer are kept."""
    (agent,) = add_agents(begin)
    up = do(begin, messaging.send, "Done?", sender_id=agent, requires_response=True)
    assert (up.sender_type, up.sender_id) == (AGENT, agent)
    assert (up.recipient_type, up.recipient_id) == (USER, None)
    assert (up.content, up.requires_response, up.status) == ("Done?", True, PENDING)
    down = do(begin, messaging.send, "Go on", recipient_id=agent)
    assert (down.sender_type, down.sender_id) == (USER, None)
    assert (down.recipient_type, down.recipient_id) == (AGENT, agent)
    assert (_get(begin, up), _get(begin, down)) == (up, down)


@pytest.mark.parametrize("side", ["sender_id", "recipient_id"])
def test_nobody_writes_to_or_from_an_unknown_agent(begin: Begin, side: str) -> None:
    """The agent is named, and nothing is kept."""
    with begin() as uow:
        with pytest.raises(NotFound, match="agt_missing"):
            messaging.send(uow, "x", **{side: "agt_missing"})
        uow.commit()
    assert _inbox(begin) == []


def test_a_reply_goes_back_and_gives_its_parent_the_response(begin: Begin) -> None:
    """In the name of whom the parent was for; what waited for an answer waits no more."""
    (agent,) = add_agents(begin)
    asked = do(begin, messaging.send, "May I?", sender_id=agent, requires_response=True)
    with begin(write=False) as uow:
        assert uow.messages.requiring_response() == [asked]
    reply = do(begin, messaging.reply, asked.id, "Yes")
    assert (reply.sender_type, reply.sender_id) == (USER, None)
    assert (reply.recipient_type, reply.recipient_id) == (AGENT, agent)
    assert (reply.parent_message_id, reply.content, reply.status) == (asked.id, "Yes", PENDING)
    assert _get(begin, asked).status is RESPONDED
    with begin(write=False) as uow:
        assert uow.messages.requiring_response() == []
    assert _inbox(begin, agent) == [reply]


def test_only_whom_a_message_was_for_gives_its_response(begin: Begin) -> None:
    """Its sender may add to the thread, and so may others; it still waits."""
    one, other, third = add_agents(begin, 3)
    asked = do(
        begin, messaging.send, "?", sender_id=one, recipient_id=other, requires_response=True
    )
    for sender in (one, third, None):
        do(
            begin,
            messaging.send,
            "and?",
            sender_id=sender,
            recipient_id=other,
            parent_message_id=asked.id,
        )
    assert _get(begin, asked).status is PENDING
    do(begin, messaging.send, "!", sender_id=other, recipient_id=one, parent_message_id=asked.id)
    assert _get(begin, asked).status is RESPONDED


def test_a_reply_is_of_whoever_acts(begin: Begin) -> None:
    """Nobody speaks for the recipient: the message still waits for it, and the sender is told."""
    asked_of, other = add_agents(begin, 2)
    asked = do(begin, messaging.send, "May I?", recipient_id=asked_of, requires_response=True)
    for sender in (other, None):
        reply = do(begin, messaging.reply, asked.id, "no", sender_id=sender)
        assert reply.sender_id == sender
        assert reply.recipient_id == (None if sender else asked_of)
    assert _get(begin, asked).status is PENDING
    do(begin, messaging.reply, asked.id, "yes", sender_id=asked_of)
    assert _get(begin, asked).status is RESPONDED


def test_an_answer_to_an_agent_that_is_gone_is_kept(begin: Begin) -> None:
    """The thread outlives it."""
    (agent,) = add_agents(begin)
    asked = do(begin, messaging.send, "?", sender_id=agent)
    with begin() as uow:
        uow.agents.remove(agent)
        uow.commit()
    reply = do(begin, messaging.reply, asked.id, "!")
    assert reply.recipient_id == agent
    with begin(write=False) as uow:
        assert [each.id for each in messaging.thread(uow, reply.id)] == [asked.id, reply.id]


def test_reading_a_message_takes_it_out_of_the_inbox(begin: Begin) -> None:
    """It counts as read once; what is answered stays answered."""
    (agent,) = add_agents(begin)
    message = do(begin, messaging.send, "x", recipient_id=agent)
    read = do(begin, messaging.read, message.id)
    assert read == evolve(message, status=READ, updated_at=read.updated_at, version=2)
    assert _inbox(begin, agent) == []
    assert do(begin, messaging.read, message.id) == read
    do(begin, messaging.reply, message.id, "y", sender_id=agent)
    assert do(begin, messaging.read, message.id).status is RESPONDED


@for_each("later", MessageStatus)
@for_each("earlier", MessageStatus)
def test_a_message_only_goes_forward(
    begin: Begin, earlier: MessageStatus, later: MessageStatus
) -> None:
    """Pending, read, responded; the same again changes nothing, back is refused."""
    (agent,) = add_agents(begin)
    message = do(begin, messaging.send, "x", recipient_id=agent)
    before = do(begin, messaging.mark, message.id, earlier)
    order = list(MessageStatus)
    if order.index(later) < order.index(earlier):
        with begin() as uow, pytest.raises(InvalidValue, match="status"):
            messaging.mark(uow, message.id, later)
        assert _get(begin, message) == before
    else:
        assert do(begin, messaging.mark, message.id, later).status is later
        assert _get(begin, message).version == 1 + (earlier is not PENDING) + (later is not earlier)


def test_an_inbox_holds_what_is_unread_oldest_first(begin: Begin) -> None:
    """The person's and each agent's own, a page at a time."""
    one, other = add_agents(begin, 2)
    mine = [do(begin, messaging.send, str(n), recipient_id=one) for n in range(3)]
    theirs = do(begin, messaging.send, "x", recipient_id=other)
    persons = [do(begin, messaging.send, str(n), sender_id=one) for n in range(3)]
    do(begin, messaging.read, persons[1].id)
    assert _inbox(begin, one) == mine
    assert _inbox(begin, one, limit=2) == mine[:2]
    assert _inbox(begin, one, limit=2, after=mine[1].id) == mine[2:]
    assert _inbox(begin, other) == [theirs]
    assert _inbox(begin) == [persons[0], persons[2]]
    with begin(write=False) as uow, pytest.raises(NotFound):
        messaging.inbox(uow, "agt_missing")


def _grown(begin: Begin) -> list[Message]:
    """A thread of messages `0`, `0.0`, `0.1`, `0.0.0`, …, added level by level."""
    (agent,) = add_agents(begin)
    messages = [do(begin, messaging.send, "0", recipient_id=agent)]
    for parent in messages:
        if len(parent.content) < 5:
            messages += [
                do(begin, messaging.reply, parent.id, f"{parent.content}.{n}") for n in range(2)
            ]
    return messages


def test_a_thread_is_the_whole_tree_in_order(begin: Begin) -> None:
    """Each message before its replies, older replies with all that came of them first."""
    messages = _grown(begin)
    other = do(begin, messaging.send, "elsewhere", sender_id=messages[0].recipient_id)
    texts = ["0", "0.0", "0.0.0", "0.0.1", "0.1", "0.1.0", "0.1.1"]
    for message in messages:
        with begin(write=False) as uow:
            assert [each.content for each in messaging.thread(uow, message.id)] == texts
    with begin(write=False) as uow:
        assert messaging.thread(uow, other.id) == [other]


def test_a_thread_costs_one_question_per_level(begin: Begin, store: Store, space: str) -> None:
    """However many replies there are on it: one for the beginning, three for its three levels."""
    messages = _grown(begin)
    with unit_of_work(WrappedStore(store, Counting), space, write=False) as uow:
        assert len(messaging.thread(uow, messages[0].id)) == 7
        assert dict(uow.session.asked) == {"messages": 1 + 3}


def test_a_thread_that_was_tied_into_a_ring_has_an_end(begin: Begin) -> None:
    """Every message of it comes once, in a store whose program did not refuse it yet."""
    messages = _grown(begin)
    with begin() as uow:
        root, last = uow.messages.get(messages[0].id), messages[-1]
        uow.session.replace(MESSAGES, [evolve(root, parent_message_id=last.id)])
        uow.commit()
    with begin(write=False) as uow:
        found = [each.id for each in messaging.thread(uow, last.id)]
    assert sorted(found) == sorted(message.id for message in messages)


@for_each(
    "use_case",
    [messaging.reply, messaging.mark, messaging.answer],
    ids=lambda it: it.__name__,
)
def test_what_is_not_there_is_named(begin: Begin, use_case: Callable[..., object]) -> None:
    """Nothing is made up for it."""
    second = READ if use_case is messaging.mark else "x"
    with begin() as uow, pytest.raises(NotFound, match="missing"):
        use_case(uow, "missing", second)
