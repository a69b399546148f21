"""Messages between agents and people, questions between agents, chats, and agents' output."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any

from herdbook.domain.entity import NEVER, WorkEntity, entity
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
class Message(WorkEntity):
    """A message between an agent and a person, or between two agents; a reply names its parent."""

    sender_type: Party
    sender_id: Id | None = None
    recipient_type: Party
    recipient_id: Id | None = None
    parent_message_id: Id | None = None
    content: Text
    requires_response: bool = False
    status: MessageStatus = MessageStatus.PENDING


def asks_person(message: Mapping[str, Any]) -> bool:
    """Whether a message, given by its values, lets its agent wait for the answer of a person."""
    is_of_agent = message.get("sender_type") == Party.AGENT and message.get("sender_id") is not None
    is_open = message.get("requires_response") and message.get("status") != MessageStatus.RESPONDED
    to_agent = message.get("recipient_type") == Party.AGENT
    return bool(is_of_agent and is_open) and not (to_agent and message.get("recipient_id"))


@entity
class Conversation(WorkEntity):
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
class ChatSession(WorkEntity):
    """A chat in which a person refines a phase or a task together with an agent."""

    target_type: ChatTarget
    target_id: Id
    initiative_id: Id
    agent_id: Id | None = None
    status: ChatStatus = ChatStatus.ACTIVE


@entity
class ChatMessage:
    """One message of a chat session, and the change set it led to."""

    id: Key = ""
    chat_session_id: Id
    role: ChatRole
    content: Text
    change_set_id: Id | None = None
    created_at: datetime = NEVER


@entity
class LogChunk:
    """A part of an agent's output; it outlives the agent.

    `offset` is how many bytes of its session were written before it: that of the first part tells
    how much of a long session is no longer kept.
    """

    id: Key = ""
    agent_id: Id
    agent_name: Name
    session_number: Count
    content: Text
    created_at: datetime = NEVER
    offset: Count = 0
