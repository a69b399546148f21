"""Messages in threads, questions between agents (conversations), and chats.

As sender or recipient, an agent's id stands for that agent and None for the person.
"""

from collections.abc import Sequence

from herdbook.domain.conversation import (
    ChatMessage,
    ChatRole,
    ChatSession,
    ChatStatus,
    ChatTarget,
    Conversation,
    ConversationStatus,
    Message,
    MessageStatus,
    Party,
)
from herdbook.domain.entity import evolve
from herdbook.domain.errors import AlreadyExists, InvalidValue, NotFound
from herdbook.ports.engine.dictionary import (
    CHAT_MESSAGES,
    CONVERSATIONS,
    MESSAGES,
    PHASES,
    TASKS,
)
from herdbook.ports.engine.query import any_of, find
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services import crud
from herdbook.services.listing import Listing, list_page

PAGE = 100
"""How many messages one page holds by default."""


def send(
    uow: UnitOfWork,
    content: str,
    *,
    sender_id: str | None = None,
    recipient_id: str | None = None,
    parent_message_id: str | None = None,
    requires_response: bool = False,
) -> Message:
    """Send a message to an agent or to the person, in a new thread or below another message.

    If the recipient of that other message is the sender of this one, the other one is marked as
    responded to.
    """
    for agent_id in (sender_id, recipient_id):
        if agent_id is not None:
            uow.agents.get(agent_id)
    parent = None if parent_message_id is None else uow.messages.get(parent_message_id)
    to = _party(recipient_id), recipient_id
    return _add(uow, sender_id, to, parent, content, requires_response=requires_response)


def _add(
    uow: UnitOfWork,
    sender_id: str | None,
    to: tuple[Party, str | None],
    parent: Message | None,
    content: str,
    *,
    requires_response: bool,
) -> Message:
    """Add a message; the one above it is responded to if it was sent to the sender of this one."""
    me = _party(sender_id), sender_id
    if parent is not None and (parent.recipient_type, parent.recipient_id) == me:
        mark(uow, parent.id, MessageStatus.RESPONDED)
    return uow.messages.add(
        Message(
            sender_type=me[0],
            sender_id=sender_id,
            recipient_type=to[0],
            recipient_id=to[1],
            parent_message_id=None if parent is None else parent.id,
            content=content,
            requires_response=requires_response,
        )
    )


def send_to_all(
    uow: UnitOfWork,
    content: str,
    *,
    sender_id: str | None = None,
    requires_response: bool = False,
) -> list[Message]:
    """Send a message to every agent that has not ended, but the sender, all in one transaction.

    Raises NotFound if there is no such agent.
    """
    others = [each.id for each in uow.agents.at_work() if each.id != sender_id]
    if not others:
        raise NotFound("agent", "", "nobody is at work; `herdbook agent add NAME` registers one")
    return [
        send(
            uow,
            content,
            sender_id=sender_id,
            recipient_id=each,
            requires_response=requires_response,
        )
        for each in others
    ]


def reply(
    uow: UnitOfWork,
    message_id: str,
    content: str,
    *,
    sender_id: str | None = None,
    requires_response: bool = False,
) -> Message:
    """Answer a message to its other party, as the agent of that id or as the person.

    The message is marked as responded to if it was sent to whoever answers. An answer to an agent
    that was removed is kept as well: the thread still exists.
    """
    parent = uow.messages.get(message_id)
    own = parent.sender_type, parent.sender_id
    other = parent.recipient_type, parent.recipient_id
    to = other if (_party(sender_id), sender_id) == own else own
    return _add(uow, sender_id, to, parent, content, requires_response=requires_response)


def read(uow: UnitOfWork, message_id: str) -> Message:
    """Read a message and mark it as read; one that was responded to stays so."""
    message = uow.messages.get(message_id)
    if message.status is not MessageStatus.PENDING:
        return message
    return mark(uow, message_id, MessageStatus.READ)


def mark(uow: UnitOfWork, message_id: str, status: MessageStatus) -> Message:
    """Set the status of a message; raises InvalidValue for an earlier status than it has."""
    message = uow.messages.get(message_id)
    if message.status is status:
        return message
    order = list(MessageStatus)
    if order.index(status) < order.index(message.status):
        reason = f"message {message_id!r} is {message.status} and cannot be {status} again"
        raise InvalidValue("status", reason)
    return uow.messages.save(evolve(message, status=status))


def inbox(
    uow: UnitOfWork, agent_id: str | None = None, *, limit: int = PAGE, after: str | None = None
) -> list[Message]:
    """A page of the unread messages of an agent or the person, oldest first."""
    where: dict[str, object] = {"status": MessageStatus.PENDING}
    if agent_id is None:
        where["recipient_type"] = Party.USER
    else:
        where["recipient_id"] = uow.agents.get(agent_id).id
    last = None if after is None else uow.messages.get(after)
    return list_page(uow, find(MESSAGES, where, limit=limit, after=last))


def unanswered_messages(
    uow: UnitOfWork,
    recipient_id: str | None = None,
    *,
    limit: int = PAGE,
    after: str | None = None,
) -> list[Message]:
    """A page of the messages that still need a response (of this agent), oldest first."""
    last = None if after is None else uow.messages.get(after)
    rows = uow.messages.requiring_response(recipient_id=recipient_id, limit=limit, after=last)
    if last is None and len(rows) < limit:
        return Listing(rows, len(rows))
    return Listing(rows, uow.messages.count_requiring_response(recipient_id))


def thread(uow: UnitOfWork, message_id: str) -> list[Message]:
    """The whole thread of a message: its first message, then each reply followed by its replies.

    Costs one query for each step up, and one for each level of replies.
    """
    root = uow.messages.get(message_id)
    seen = {root.id}
    while root.parent_message_id is not None and root.parent_message_id not in seen:
        root = uow.messages.get(root.parent_message_id)
        seen.add(root.id)
    below: dict[str, list[Message]] = {root.id: []}
    level = [root.id]
    while level:
        found = uow.messages.select(find(MESSAGES, {"parent_message_id": any_of(level)}))
        fresh = [message for message in found if message.id not in below]
        for message in fresh:
            below[str(message.parent_message_id)].append(message)
            below[message.id] = []
        level = [message.id for message in fresh]
    return _in_order(root, below)


def ask(
    uow: UnitOfWork,
    from_agent_id: str,
    to_agent_id: str,
    question: str,
    *,
    initiative_id: str | None = None,
    phase_id: str | None = None,
    task_id: str | None = None,
) -> Conversation:
    """Ask another agent a question, about a task, a phase or an initiative.

    Unless they are given, the phase follows from the task and the initiative from either. Raises
    InvalidValue if an agent asks itself.
    """
    if from_agent_id == to_agent_id:
        raise InvalidValue("to_agent_id", "an agent that asks itself would wait for ever")
    task = None if task_id is None else uow.tasks.find(task_id)
    phase_id = phase_id or (task.phase_id if task else None)
    phase = None if phase_id is None else uow.phases.find(phase_id)
    within = phase or task
    initiative_id = initiative_id or (within.initiative_id if within else None)
    return uow.conversations.add(
        Conversation(
            from_agent_id=from_agent_id,
            to_agent_id=to_agent_id,
            initiative_id=initiative_id,
            phase_id=phase_id,
            task_id=task_id,
            question=question,
        )
    )


def count_questions(uow: UnitOfWork, agent_ids: Sequence[str]) -> dict[str, int]:
    """How many questions each of these agents has asked, by name."""
    agents = uow.agents.get_many(dict.fromkeys(agent_ids))
    counts = uow.conversations.count_by_senders(each.id for each in agents)
    return {each.name: counts[each.id] for each in agents}


def listen(uow: UnitOfWork, agent_id: str) -> Conversation | None:
    """The oldest unanswered question to an agent; None if there is none."""
    where = {
        "to_agent_id": uow.agents.get(agent_id).id,
        "status": ConversationStatus.PENDING,
    }
    return uow.conversations.first(find(CONVERSATIONS, where, limit=1))


def answer(uow: UnitOfWork, conversation_id: str, text: str) -> Conversation:
    """Answer a question; raises AlreadyExists if it has an answer, which stays."""
    if uow.conversations.get(conversation_id).status is ConversationStatus.ANSWERED:
        raise AlreadyExists("answer", conversation_id)
    return uow.conversations.answer(conversation_id, text)


def find_answer(uow: UnitOfWork, conversation_id: str) -> Conversation | None:
    """A question with its answer; None while it has none."""
    asked = uow.conversations.get(conversation_id)
    return asked if asked.status is ConversationStatus.ANSWERED else None


def open_chat(
    uow: UnitOfWork, target_type: ChatTarget, target_id: str, *, agent_id: str | None = None
) -> ChatSession:
    """The open chat about a phase or a task, created if there is none.

    The target may be named by a unique prefix of its id. The given agent joins a chat that has no
    agent.
    """
    target_type = ChatTarget(target_type)
    target_id = crud.key_of(uow, PHASES if target_type is ChatTarget.PHASE else TASKS, target_id)
    chat = uow.chat_sessions.active_for_target(target_type, target_id)
    if chat is None:
        return uow.chat_sessions.add(
            ChatSession(
                target_type=target_type,
                target_id=target_id,
                initiative_id=_initiative_of(uow, target_type, target_id),
                agent_id=agent_id,
            )
        )
    if agent_id is None or chat.agent_id is not None:
        return chat
    return uow.chat_sessions.save(evolve(chat, agent_id=agent_id))


def post_to_chat(
    uow: UnitOfWork,
    chat_session_id: str,
    role: ChatRole,
    content: str,
    *,
    change_set_id: str | None = None,
) -> ChatMessage:
    """Post a message to a chat; raises InvalidValue if the chat is closed."""
    if uow.chat_sessions.get(chat_session_id).status is ChatStatus.CLOSED:
        reason = f"chat {chat_session_id!r} is closed; open one about the same target and go on"
        raise InvalidValue("chat_session_id", reason)
    return uow.chat_sessions.post(
        ChatMessage(
            chat_session_id=chat_session_id,
            role=role,
            content=content,
            change_set_id=change_set_id,
        )
    )


def chat_history(
    uow: UnitOfWork, chat_session_id: str, *, limit: int = PAGE, after: str | None = None
) -> list[ChatMessage]:
    """A page of the messages of a chat, in order."""
    where = {"chat_session_id": uow.chat_sessions.get(chat_session_id).id}
    last = None if after is None else uow.get_existing(CHAT_MESSAGES, [after])[0]
    return list_page(uow, find(CHAT_MESSAGES, where, limit=limit, after=last))


def close_chat(uow: UnitOfWork, chat_session_id: str) -> ChatSession:
    """Close a chat; a closed one stays as it is."""
    chat = uow.chat_sessions.get(chat_session_id)
    if chat.status is ChatStatus.CLOSED:
        return chat
    return uow.chat_sessions.save(evolve(chat, status=ChatStatus.CLOSED))


def _party(agent_id: str | None) -> Party:
    return Party.USER if agent_id is None else Party.AGENT


def _in_order(root: Message, below: dict[str, list[Message]]) -> list[Message]:
    ordered, left = [], [root]
    while left:
        message = left.pop()
        ordered.append(message)
        left += reversed(below[message.id])
    return ordered


def _initiative_of(uow: UnitOfWork, target_type: ChatTarget, target_id: str) -> str:
    if target_type is ChatTarget.PHASE:
        return uow.phases.get(target_id).initiative_id
    initiative_id = uow.tasks.initiative_id_of(uow.tasks.get(target_id))
    if initiative_id is None:
        reason = f"task {target_id!r} is of no initiative, and a chat is about something in one"
        raise InvalidValue("target_id", reason)
    return initiative_id
