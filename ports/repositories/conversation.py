"""Named queries for messages, conversations, chats and logs."""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice

from herdbook.domain.conversation import (
    ChatMessage,
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
from herdbook.ports.engine.dictionary import CHAT_MESSAGES
from herdbook.ports.engine.query import Query, above, any_of, find
from herdbook.ports.repositories.base import PAGE, Repository


class Messages(Repository[Message]):
    """Messages between agents and people."""

    def pending_for_user(self) -> list[Message]:
        """The messages a person has not read yet, oldest first."""
        where = {"recipient_type": Party.USER, "status": MessageStatus.PENDING}
        return self.select(find(self.kind, where))

    def pending_for_agent(self, agent_id: str) -> list[Message]:
        """The messages an agent has not read yet, oldest first."""
        where = {"recipient_id": agent_id, "status": MessageStatus.PENDING}
        return self.select(find(self.kind, where))

    def requiring_response(
        self,
        *,
        recipient_id: str | None = None,
        limit: int | None = None,
        after: Message | None = None,
    ) -> list[Message]:
        """The messages that still need an answer (of this agent), oldest first."""
        query = self._unanswered_query()._replace(limit=limit)
        query = query if after is None else query.next_page(after)
        if recipient_id is None:
            return self.select(query)
        found = self.select_all(query._replace(limit=limit or PAGE))
        return list(islice((each for each in found if each.recipient_id == recipient_id), limit))

    def count_requiring_response(self, recipient_id: str | None = None) -> int:
        """How many messages still need an answer (of this agent)."""
        if recipient_id is None:
            return self.uow.count(self._unanswered_query())
        found = self.select_all(self._unanswered_query()._replace(limit=PAGE))
        return sum(each.recipient_id == recipient_id for each in found)

    def _unanswered_query(self) -> Query[Message]:
        open_statuses = any_of([MessageStatus.PENDING, MessageStatus.READ])
        return find(self.kind, {"requires_response": True, "status": open_statuses})

    def replies(self, message_id: str) -> list[Message]:
        """The answers to a message, oldest first."""
        return self.select(find(self.kind, {"parent_message_id": message_id}))


class Conversations(Repository[Conversation]):
    """Questions between agents."""

    def pending_for(self, agent_id: str) -> list[Conversation]:
        """The questions an agent was asked and has not answered, oldest first."""
        where = {"to_agent_id": agent_id, "status": ConversationStatus.PENDING}
        return self.select(find(self.kind, where))

    def answer(self, conversation_id: str, answer: str) -> Conversation:
        """Answer a question; raises NotFound if there is none."""
        conversation = self.get(conversation_id)
        return self.save(evolve(conversation, answer=answer, status=ConversationStatus.ANSWERED))

    def by_sender(self, agent_id: str) -> list[Conversation]:
        """The questions an agent asked, oldest first."""
        return self.select(find(self.kind, {"from_agent_id": agent_id}))

    def count_by_senders(self, agent_ids: Iterable[str]) -> dict[str, int]:
        """How many questions each of these agents asked, in one query."""
        asked = list(dict.fromkeys(agent_ids))
        counts: Counter[str] = Counter()
        if asked:
            rows = self.select(find(self.kind, {"from_agent_id": any_of(asked)}))
            counts.update(row.from_agent_id for row in rows)
        return {agent_id: counts[agent_id] for agent_id in asked}


class ChatSessions(Repository[ChatSession]):
    """Chats about phases and tasks."""

    def active_for_target(self, target_type: ChatTarget, target_id: str) -> ChatSession | None:
        """The open chat about a phase or a task, the newest if there are several."""
        where = {"target_type": target_type, "target_id": target_id, "status": ChatStatus.ACTIVE}
        return self.first(find(self.kind, where, descending=True, limit=1))

    def active_for_agent(
        self, agent_id: str, *, initiative_id: str | None = None
    ) -> ChatSession | None:
        """The open chat of an agent (in this initiative), the newest if there are several."""
        where = {"agent_id": agent_id, "status": ChatStatus.ACTIVE}
        chats = self.select_all(find(self.kind, where, descending=True, limit=PAGE))
        return next((each for each in chats if initiative_id in (None, each.initiative_id)), None)

    def post(self, message: ChatMessage) -> ChatMessage:
        """Add a message to its chat."""
        return self.uow.add(CHAT_MESSAGES, [message])[0]

    def messages(self, chat_session_id: str) -> list[ChatMessage]:
        """The messages of a chat, in order."""
        return self.uow.select(find(CHAT_MESSAGES, {"chat_session_id": chat_session_id}))


class LogChunks(Repository[LogChunk]):
    """The output of agents."""

    def append(self, chunk: LogChunk) -> LogChunk:
        """Add a chunk to an agent's log."""
        return self.add(chunk)

    def of_agent(
        self, agent_id: str, *, limit: int | None = None, after: LogChunk | None = None
    ) -> list[LogChunk]:
        """An agent's log, in order."""
        return self.select(find(self.kind, {"agent_id": agent_id}, limit=limit, after=after))

    def of_agents(self, agent_ids: Iterable[str]) -> dict[str, list[LogChunk]]:
        """Several agents' logs, each in order, in one query."""
        logs: dict[str, list[LogChunk]] = {agent_id: [] for agent_id in agent_ids}
        if logs:
            for chunk in self.select(find(self.kind, {"agent_id": any_of(logs)})):
                logs[chunk.agent_id].append(chunk)
        return logs

    def agent_ids(self) -> Iterator[str]:
        """The ids of all agents that have a log, removed ones too, with one query for each."""
        first = self.first(find(self.kind, by=("agent_id",), limit=1))
        while first is not None:
            yield first.agent_id
            first = self.first(find(self.kind, {"agent_id": above(first.agent_id)}, limit=1))

    def last(self, agent_id: str) -> LogChunk | None:
        """The last chunk of an agent's log."""
        return self.first(find(self.kind, {"agent_id": agent_id}, descending=True, limit=1))

    def session_count(self, agent_id: str) -> int:
        """How many sessions an agent has a log of: its last session's number."""
        last = self.last(agent_id)
        return last.session_number if last else 0

    def remove_of_agent(self, agent_id: str) -> int:
        """Remove an agent's log; return how many chunks it had."""
        chunks = self.of_agent(agent_id)
        self.remove_all([chunk.id for chunk in chunks])
        return len(chunks)
