"""Threads, questions and chats in one list, on every store."""

import pytest

from herdbook.domain.agents.model import Agent, AgentStatus
from herdbook.domain.conversation import ChatRole, ChatTarget, MessageStatus
from herdbook.domain.errors import NotFound
from herdbook.domain.plan.model import PhaseStatus
from herdbook.ports.engine.store import Store
from herdbook.ports.unit_of_work.run import read
from herdbook.services import messaging, talk
from herdbook.services.journal.undo import undo
from herdbook.services.talk import TalkList, list_talk, show_talk
from tests.contract.claims import add_initiative, add_phase, do
from tests.contract.turns import Begin


def add_named(begin: Begin, *names: str) -> list[str]:
    """Add agents by name, and give their ids."""
    with begin() as uow:
        ids = [each.id for each in uow.agents.add_all([Agent(name=name) for name in names])]
        uow.commit()
    return ids


def talk_of(begin: Begin, limit: int = 100) -> TalkList:
    """The list as a reader sees it."""
    with begin(write=False) as uow:
        return list_talk(uow, limit=limit)


def test_nobody_has_said_anything(begin: Begin) -> None:
    assert talk_of(begin) == ([], 0, 0, 0)


def test_what_needs_an_answer_comes_first_then_the_unread_then_the_newest(begin: Begin) -> None:
    """Each with its last line, its agents, and the numbers of its lines."""
    otter, lynx = add_named(begin, "otter", "lynx")
    done = do(begin, messaging.send, "hello", recipient_id=otter)
    do(begin, messaging.send, "news", sender_id=lynx)
    asked = do(begin, messaging.send, "may I?", sender_id=otter, requires_response=True)
    question = do(begin, messaging.ask, otter, lynx, "which port?")
    goal = add_initiative(begin)
    phase = add_phase(begin, goal, PhaseStatus.APPROVED)
    chat = do(begin, messaging.open_chat, ChatTarget.PHASE, phase.id, agent_id=lynx)
    do(begin, messaging.post_to_chat, chat.id, ChatRole.ASSISTANT, "shorter?")
    do(begin, messaging.reply, done.id, "hello to you", sender_id=otter)
    found = talk_of(begin)
    told = [
        (each.kind, each.last.by, each.last.text, each.lines, each.unread, each.needs_answer)
        for each in found.entries
    ]
    assert told == [
        ("thread", "otter", "may I?", 1, 1, True),
        ("thread", "lynx", "news", 1, 1, False),
        ("thread", "otter", "hello to you", 2, 1, False),
        ("chat", "lynx", "shorter?", 1, 0, False),
        ("question", "otter", "which port?", 1, 0, False),
    ]
    assert (found.total, found.unread, found.unanswered) == (5, 3, 1)
    assert [each.agents for each in found.entries[2:]] == [("otter",), ("lynx",), ("otter", "lynx")]
    do(begin, messaging.reply, asked.id, "you may")
    do(begin, messaging.answer, question.id, "8080")
    after = talk_of(begin)
    assert after.unanswered == 0
    by_id = {each.id: each for each in after.entries}
    assert (by_id[asked.id].last.by, by_id[asked.id].last.to) == (None, "otter")
    assert (by_id[question.id].last.text, by_id[question.id].open) == ("8080", False)
    assert not any(each.needs_answer for each in after.entries)


def test_one_is_shown_by_any_of_its_messages(begin: Begin) -> None:
    """In the order in which it was said; an answer belongs to what waits for the person."""
    (otter,) = add_named(begin, "otter")
    first = do(begin, messaging.send, "one", sender_id=otter, requires_response=True)
    second = do(begin, messaging.reply, first.id, "two")
    third = do(begin, messaging.reply, second.id, "three", sender_id=otter)
    with begin(write=False) as uow:
        for key in (first.id, second.id, third.id):
            found = show_talk(uow, key)
            assert [each.text for each in found.lines] == ["one", "two", "three"]
            assert [each.by for each in found.lines] == ["otter", None, "otter"]
            assert (found.entry.id, found.reply_to) == (first.id, third.id)
        with pytest.raises(NotFound):
            show_talk(uow, "msg_ffffffffffffffffffff")


def test_a_question_that_is_answered_and_a_closed_chat_take_no_answer(begin: Begin) -> None:
    otter, lynx = add_named(begin, "otter", "lynx")
    asked = do(begin, messaging.ask, otter, lynx, "which port?")
    phase = add_phase(begin, add_initiative(begin), PhaseStatus.APPROVED)
    chat = do(begin, messaging.open_chat, ChatTarget.PHASE, phase.id)
    with begin(write=False) as uow:
        assert show_talk(uow, asked.id).reply_to == asked.id
        assert show_talk(uow, chat.id).reply_to == chat.id
        assert show_talk(uow, chat.id).lines[0].text == "Nothing has been said yet."
    do(begin, messaging.answer, asked.id, "8080")
    do(begin, messaging.close_chat, chat.id)
    with begin(write=False) as uow:
        assert show_talk(uow, asked.id).reply_to is None
        assert [each.text for each in show_talk(uow, asked.id).lines] == ["which port?", "8080"]
        assert show_talk(uow, chat.id).reply_to is None


def test_an_old_thread_that_goes_on_is_among_the_first(begin: Begin) -> None:
    """Though many began after it, and it is cut to a few."""
    otter, lynx = add_named(begin, "otter", "lynx")
    old = do(begin, messaging.send, "old", sender_id=otter, recipient_id=lynx)
    for number in range(5):
        do(begin, messaging.send, f"{number}", sender_id=otter, recipient_id=lynx)
    do(begin, messaging.reply, old.id, "still", sender_id=lynx)
    found = talk_of(begin, limit=2)
    assert [each.last.text for each in found.entries] == ["still", "4"]
    assert found.total == 6


def test_reading_a_thread_marks_what_was_sent_to_the_reader(begin: Begin) -> None:
    """In one transaction, which can be undone; what others were sent stays unread."""
    otter, lynx = add_named(begin, "otter", "lynx")
    first = do(begin, messaging.send, "one", sender_id=otter)
    do(begin, messaging.reply, first.id, "two", sender_id=otter)
    between = {"sender_id": lynx, "recipient_id": otter}
    do(begin, messaging.send, "three", parent_message_id=first.id, **between)
    marked = do(begin, talk.read_thread, first.id)
    assert [each.content for each in marked] == ["one", "two"]
    with begin(write=False) as uow:
        (left,) = uow.messages.pending_for_agent(otter)
        assert left.content == "three"
        assert uow.messages.pending_for_user() == []
        tx = uow.journal.recent(1)[0].tx
    do(begin, undo, tx)
    with begin(write=False) as uow:
        assert len(uow.messages.pending_for_user()) == 2


def test_a_message_to_all_reaches_everybody_who_has_not_ended(begin: Begin) -> None:
    """But the sender; and nothing is sent if there is nobody."""
    with pytest.raises(NotFound):
        do(begin, messaging.send_to_all, "freeze")
    otter, lynx, mole = add_named(begin, "otter", "lynx", "mole")
    with begin() as uow:
        gone = uow.agents.add(Agent(name="gone", status=AgentStatus.STOPPED))
        uow.commit()
    do(begin, messaging.send_to_all, "freeze", sender_id=otter)
    with begin(write=False) as uow:
        waiting = {each: uow.messages.pending_for_agent(each) for each in (otter, lynx, mole)}
        assert [len(each) for each in waiting.values()] == [0, 1, 1]
        assert uow.messages.pending_for_agent(gone.id) == []
        assert waiting[lynx][0].status is MessageStatus.PENDING


def test_it_can_be_read_as_it_was(store: Store, space: str, begin: Begin) -> None:
    (otter,) = add_named(begin, "otter")
    do(begin, messaging.send, "one", sender_id=otter)
    with begin(write=False) as uow:
        then = uow.journal.last()
    before = talk_of(begin)
    do(begin, messaging.send, "two", sender_id=otter)
    assert read(store, space, list_talk, at=then) == before
    assert talk_of(begin).total == 2


def test_what_needs_an_answer_is_found_among_many_questions_between_agents(
    begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that need an answer are counted, also those that are not told."""
    monkeypatch.setattr(talk, "WAITING_READ", 2)
    monkeypatch.setattr(talk, "PAGE", 2)
    monkeypatch.setattr(talk, "RECENT_ENTRIES", 1)
    otter, lynx = add_named(begin, "otter", "lynx")
    own = {"sender_id": otter, "requires_response": True}
    for number in range(5):
        between = do(begin, messaging.send, f"port {number}?", recipient_id=lynx, **own)
        do(begin, messaging.mark, between.id, MessageStatus.READ)
    asked = [do(begin, messaging.send, f"merge {number}?", **own).id for number in range(3)]
    for each in asked:
        do(begin, messaging.read, each)
    for number in range(5):
        do(begin, messaging.send, f"hello {number}", sender_id=lynx, recipient_id=otter)
    found = talk_of(begin, limit=3)
    assert [each.id for each in found.entries if each.needs_answer] == asked[:2]
    assert found.unanswered == 3
