"""What agents and people say to one another, and what agents print."""

from datetime import datetime
from enum import StrEnum

from herdbook.domain.entity import NEVER, Worked, entity
from herdbook.domain.values import Count, Id, Key, Name, Text


class Party(StrEnum):
    AGENT = "agent"
    USER = "user"


class MessageStatus(StrEnum):
    PENDING = "pending"
    READ = "read"
    RESPONDED = "responded"


class ConversationStatus(StrEnum):
    PENDING = "pending"
    ANSWERED = "answered"


class ChatTarget(StrEnum):
    PHASE = "phase"
    TASK = "task"


class ChatStatus(StrEnum):
    ACTIVE = "active"
    CLOSED = "closed"


class ChatRole(StrEnum):
    USER = "user"
    ASSISTANT = "assistant"
    SYSTEM = "system"


@entity
class Message(Worked):
    """A message between an agent and a person, or two agents; replies name their parent."""

    sender_type: Party
    sender_id: Id | None = None
    recipient_type: Party
    recipient_id: Id | None = None
    parent_message_id: Id | None = None
    content: Text
    requires_response: bool = False
    status: MessageStatus = MessageStatus.PENDING


@entity
class Conversation(Worked):
    """One question from one agent to another, and its answer."""

    from_agent_id: Id
    to_agent_id: Id
    initiative_id: Id | None = None
    phase_id: Id | None = None
    task_id: Id | None = None
    question: Text
    answer: Text | None = None
    status: ConversationStatus = ConversationStatus.PENDING


@entity
class ChatSession(Worked):
    """A person refines a phase or a task together with an agent."""

    target_type: ChatTarget
    target_id: Id
    initiative_id: Id
    agent_id: Id | None = None
    status: ChatStatus = ChatStatus.ACTIVE


@entity
class ChatMessage:
    """One utterance in a chat session, and the changes it led to."""

    id: Key = ""
    chat_session_id: Id
    role: ChatRole
    content: Text
    change_set_id: Id | None = None
    created_at: datetime = NEVER


@entity
class LogChunk:
    """A piece of what an agent printed; it outlives the agent."""

    id: Key = ""
    agent_id: Id
    agent_name: Name
    session_number: Count
    content: Text
    created_at: datetime = NEVER
