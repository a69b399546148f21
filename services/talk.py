"""What agents and the person say to one another, in one list: threads, questions and chats.

A thread is a message with its replies, a question is a conversation of two agents, a chat is about
a phase or a task. What needs the person's answer comes first.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import islice
from typing import Any, NamedTuple

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
from herdbook.domain.errors import NotFound
from herdbook.ports.engine.dictionary import (
    AGENTS,
    CHAT_MESSAGES,
    CHAT_SESSIONS,
    CONVERSATIONS,
    JOURNAL,
    MESSAGES,
    PHASES,
    TASKS,
)
from herdbook.ports.engine.kinds import Kind
from herdbook.ports.engine.paging import PAGE, select_all
from herdbook.ports.engine.query import any_of, find
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services import crud, messaging

LIMIT = 100
"""How many of them are told unless it is said."""
WAITING_READ = 200
"""How many messages that wait for the person are told, of those to answer and of those to read."""
RECENT_ENTRIES = 500
"""How many of the last journal entries tell what was said lately, however old its beginning is."""
MOST_LINES = 500
"""How many of the last lines of one of them are told."""
_KINDS: dict[str, Kind[Any]] = {
    each.prefix: each for each in (MESSAGES, CONVERSATIONS, CHAT_SESSIONS)
}


class TalkLine(NamedTuple):
    """Something that was said; without a name, by or to the person."""

    id: str
    at: datetime
    by: str | None
    to: str | None
    text: str
    status: str | None = None
    requires_response: bool = False


class TalkEntry(NamedTuple):
    """A thread, a question or a chat: `kind` is one of these words.

    `last` is the line that was said last. `unread` counts lines to the person that nobody has read,
    and `needs_answer` says that one needs an answer of the person. One that is `open` can go on.
    """

    id: str
    kind: str
    title: str
    agents: tuple[str, ...]
    last: TalkLine
    lines: int
    unread: int
    needs_answer: bool
    open: bool
    task_id: str | None = None


class TalkList(NamedTuple):
    """The first entries, how many there are in all, and how many lines wait for the person."""

    entries: list[TalkEntry]
    total: int
    unread: int
    unanswered: int


class TalkText(NamedTuple):
    """One of them with its last lines, in order; an answer belongs to the row `reply_to`."""

    entry: TalkEntry
    lines: list[TalkLine]
    reply_to: str | None


def list_talk(uow: UnitOfWork, *, limit: int = LIMIT) -> TalkList:
    """What needs the person first, oldest first; then what is unread; then what was said last."""
    book = _TalkBook(uow)
    waiting, unanswered = _waiting_messages(uow)
    recent = _recent_rows(uow)
    newest = find(MESSAGES, {"parent_message_id": None}, descending=True, limit=limit)
    roots = book.find_roots([*waiting, *recent[MESSAGES.name], *uow.select(newest)])
    entries = [book.thread_entry(each) for each in book.read_threads(roots)]
    # These have no order in time: what was said lately is in the journal's last entries.
    some: list[Any] = uow.select(find(CONVERSATIONS, limit=limit))
    asked = {each.id: each for each in [*recent[CONVERSATIONS.name], *some]}
    entries += [book.question_entry(each) for each in asked.values()]
    some = uow.select(find(CHAT_SESSIONS, limit=limit))
    chats = {each.id: each for each in [*recent[CHAT_SESSIONS.name], *some]}
    entries += [book.chat_entry(each) for each in chats.values()]
    total = uow.count(find(MESSAGES, {"parent_message_id": None}))
    total += uow.count(find(CONVERSATIONS)) + uow.count(find(CHAT_SESSIONS))
    unread = find(MESSAGES, {"recipient_type": Party.USER, "status": MessageStatus.PENDING})
    entries.sort(key=_order)
    return TalkList(entries[: max(1, limit)], total, uow.count(unread), unanswered)


def show_talk(uow: UnitOfWork, key: str) -> TalkText:
    """A thread by any of its messages, a question or a chat, by its id or a unique prefix of it.

    Raises NotFound if there is none, and what `crud.key_of` raises.
    """
    row = _find_talk(uow, key)
    book = _TalkBook(uow)
    if isinstance(row, Message):
        messages = messaging.thread(uow, row.id)
        entry = book.thread_entry(messages)
        own = [each for each in messages if _waits_for_person(each)]
        said = sorted(messages, key=lambda each: (each.created_at, each.id))
        lines = [book.message_line(each) for each in said[-MOST_LINES:]]
        return TalkText(entry, lines, (own or said)[-1].id)
    if isinstance(row, Conversation):
        entry = book.question_entry(row)
        return TalkText(entry, book.question_lines(row), row.id if entry.open else None)
    entry = book.chat_entry(row)
    chat = find(CHAT_MESSAGES, {"chat_session_id": row.id}, descending=True, limit=MOST_LINES)
    posts = uow.select(chat)[::-1]
    lines = [book.chat_line(row, each) for each in posts] or [entry.last]
    return TalkText(entry, lines, row.id if entry.open else None)


def read_thread(uow: UnitOfWork, message_id: str, *, reader_id: str | None = None) -> list[Message]:
    """Mark the unread messages of a thread to an agent or the person as read; they are returned."""
    me = (Party.USER if reader_id is None else Party.AGENT), reader_id
    return [
        messaging.mark(uow, each.id, MessageStatus.READ)
        for each in messaging.thread(uow, message_id)
        if each.status is MessageStatus.PENDING and (each.recipient_type, each.recipient_id) == me
    ]


def _find_talk(uow: UnitOfWork, key: str) -> Message | Conversation | ChatSession:
    named = _KINDS.get(key.partition("_")[0])
    for kind in _KINDS.values() if named is None else (named,):
        try:
            found: Message | Conversation | ChatSession = crud.find_row(uow, kind, key)
        except NotFound:
            continue
        return found
    raise NotFound("talk", key, "`herdbook talk` lists what there is")


def _order(entry: TalkEntry) -> tuple[int, float]:
    moment = entry.last.at.timestamp()
    if entry.needs_answer:
        return 0, moment
    return (1, moment) if entry.unread else (2, -moment)


def _waits_for_person(message: Message) -> bool:
    """Whether a message to the person is unread, or needs an answer and has none."""
    if message.recipient_type is not Party.USER:
        return False
    is_unread = message.status is MessageStatus.PENDING
    needs = message.requires_response and message.status is not MessageStatus.RESPONDED
    return is_unread or needs


def _waiting_messages(uow: UnitOfWork) -> tuple[list[Message], int]:
    """Messages that wait for the person, and how many need an answer, those not told too."""
    unread = {"recipient_type": Party.USER, "status": MessageStatus.PENDING}
    open_statuses = any_of((MessageStatus.PENDING, MessageStatus.READ))
    unanswered = {"requires_response": True, "status": open_statuses}
    # Not kept by the unit of work: most of those may be between agents.
    every = select_all(uow.session, find(MESSAGES, unanswered, limit=PAGE))
    asked = (each for each in every if each.recipient_type is Party.USER)
    found = list(islice(asked, WAITING_READ))
    count = len(found) + sum(1 for _ in asked)
    return [*found, *uow.select(find(MESSAGES, unread, limit=WAITING_READ))], count


def _recent_rows(uow: UnitOfWork) -> dict[str, list[Any]]:
    """The messages, questions and chats that the last entries of the journal are about."""
    keys: dict[str, dict[str, None]] = {
        kind.name: {} for kind in (MESSAGES, CONVERSATIONS, CHAT_SESSIONS, CHAT_MESSAGES)
    }
    for entry in uow.select(find(JOURNAL, descending=True, limit=RECENT_ENTRIES)):
        if entry.entity in keys:
            keys[entry.entity].setdefault(entry.key)
    posts = uow.get(CHAT_MESSAGES, list(keys[CHAT_MESSAGES.name]))
    keys[CHAT_SESSIONS.name] |= {each.chat_session_id: None for each in posts if each is not None}
    return {
        kind.name: [each for each in uow.get(kind, list(keys[kind.name])) if each is not None]
        for kind in _KINDS.values()
    }


class _TalkBook:
    """Makes entries of rows, and looks up the names of their agents."""

    def __init__(self, uow: UnitOfWork) -> None:
        self._uow = uow
        self._names: dict[str, str] = {}

    def find_roots(self, messages: Iterable[Message]) -> list[Message]:
        """The first messages of the threads of these, each once; one query for each step up."""
        roots: dict[str, Message] = {}
        level = {each.id: each for each in messages}
        seen: set[str] = set()
        while level:
            seen |= level.keys()
            above = set()
            for each in level.values():
                if each.parent_message_id is None:
                    roots.setdefault(each.id, each)
                else:
                    above.add(each.parent_message_id)
            found = self._uow.get(MESSAGES, sorted(above - seen))
            level = {each.id: each for each in found if each is not None}
        return list(roots.values())

    def read_threads(self, roots: Sequence[Message]) -> list[list[Message]]:
        """The messages of each thread; one query for each level of replies."""
        threads = {each.id: [each] for each in roots}
        root_of = {each.id: each.id for each in roots}
        level = list(threads)
        while level:
            found = self._uow.select(find(MESSAGES, {"parent_message_id": any_of(level)}))
            fresh = [each for each in found if each.id not in root_of]
            for each in fresh:
                root_of[each.id] = root_of[str(each.parent_message_id)]
                threads[root_of[each.id]].append(each)
            level = [each.id for each in fresh]
        return list(threads.values())

    def thread_entry(self, messages: Sequence[Message]) -> TalkEntry:
        """The entry of a thread, whose first message is the first."""
        last = max(messages, key=lambda each: (each.created_at, each.id))
        waiting = [each for each in messages if _waits_for_person(each)]
        parties = [each for one in messages for each in (one.sender_id, one.recipient_id)]
        return TalkEntry(
            messages[0].id,
            "thread",
            messages[0].content,
            self._agents(parties),
            self.message_line(last),
            len(messages),
            sum(each.status is MessageStatus.PENDING for each in waiting),
            any(each.requires_response for each in waiting),
            open=True,
        )

    def message_line(self, message: Message) -> TalkLine:
        """A message as a line."""
        return TalkLine(
            message.id,
            message.created_at,
            self._name(message.sender_id),
            self._name(message.recipient_id),
            message.content,
            message.status,
            message.requires_response,
        )

    def question_entry(self, asked: Conversation) -> TalkEntry:
        """The entry of a question between two agents."""
        lines = self.question_lines(asked)
        is_open = asked.status is ConversationStatus.PENDING
        return TalkEntry(
            asked.id,
            "question",
            asked.question,
            self._agents([asked.from_agent_id, asked.to_agent_id]),
            lines[-1],
            len(lines),
            unread=0,
            needs_answer=False,
            open=is_open,
            task_id=asked.task_id,
        )

    def question_lines(self, asked: Conversation) -> list[TalkLine]:
        """A question, and its answer if it has one."""
        asker, other = self._name(asked.from_agent_id), self._name(asked.to_agent_id)
        lines = [TalkLine(asked.id, asked.created_at, asker, other, asked.question, asked.status)]
        if asked.answer is not None:
            answer = TalkLine(f"{asked.id}/answer", asked.updated_at, other, asker, asked.answer)
            lines.append(answer)
        return lines

    def chat_entry(self, chat: ChatSession) -> TalkEntry:
        """The entry of a chat; an empty one has a line that says so."""
        where = {"chat_session_id": chat.id}
        newest = self._uow.select(find(CHAT_MESSAGES, where, descending=True, limit=1))
        is_task = chat.target_type is ChatTarget.TASK
        kind: Kind[Any] = TASKS if is_task else PHASES
        (target,) = self._uow.get(kind, [chat.target_id])
        name = chat.target_id if target is None else str(vars(target)["name"])
        empty = TalkLine(chat.id, chat.created_at, None, None, "Nothing has been said yet.")
        return TalkEntry(
            chat.id,
            "chat",
            f"About {chat.target_type} {name}",
            self._agents([chat.agent_id]),
            self.chat_line(chat, newest[0]) if newest else empty,
            self._uow.count(find(CHAT_MESSAGES, where)),
            unread=0,
            needs_answer=False,
            open=chat.status is ChatStatus.ACTIVE,
            task_id=chat.target_id if is_task else None,
        )

    def chat_line(self, chat: ChatSession, post: ChatMessage) -> TalkLine:
        """A message of a chat as a line."""
        by = {ChatRole.USER: None, ChatRole.SYSTEM: "system"}.get(
            post.role, self._name(chat.agent_id) or "assistant"
        )
        return TalkLine(post.id, post.created_at, by, None, post.content)

    def _agents(self, keys: Iterable[str | None]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self._name(key) or "" for key in keys if key is not None))

    def _name(self, key: str | None) -> str | None:
        """The name of an agent; its id if it was removed, and None for the person."""
        if key is None:
            return None
        if key not in self._names:
            (agent,) = self._uow.get(AGENTS, [key])
            self._names[key] = key if agent is None else agent.name
        return self._names[key]
