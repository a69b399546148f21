"""What is said, in one list: `talk list` and `talk show`."""

from datetime import datetime
from typing import Any, NotRequired, TypedDict

from herdbook.domain.journal import Position
from herdbook.domain.location.areas import Area
from herdbook.entrypoints.context import AppContext
from herdbook.entrypoints.operations.past_answer import PastAnswer, past_note
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services.talk import TalkEntry, TalkLine, TalkText, list_talk, show_talk

MOST = 1_000
"""How many may be asked for."""


class TalkLineAnswer(TypedDict):
    """Something that was said; `by` and `to` are names of agents, null for the person."""

    id: str
    at: datetime
    by: str | None
    to: str | None
    text: str
    status: str | None
    requires_response: bool


class TalkEntryAnswer(TypedDict):
    """A thread, a question or a chat, as `kind` says, with the line that was said last."""

    id: str
    kind: str
    title: str
    agents: list[str]
    last: TalkLineAnswer
    lines: int
    unread: int
    needs_answer: bool
    open: bool
    task_id: str | None


class TalkListAnswer(TypedDict):
    """The first of them, how many there are, and how many messages wait for the person."""

    entries: list[TalkEntryAnswer]
    total: int
    unread: int
    unanswered: int
    now: datetime
    as_of: NotRequired[PastAnswer]


class ReplyAnswer(TypedDict):
    """The operation that answers; `text` is the parameter that is written."""

    method: str
    params: dict[str, Any]
    text: str


class TalkTextAnswer(TypedDict):
    """One of them with its last lines; `reply` is null for one that is over."""

    entry: TalkEntryAnswer
    shown: list[TalkLineAnswer]
    reply: ReplyAnswer | None
    as_of: NotRequired[PastAnswer]


def list_(app: AppContext, *, limit: int, at: Position | None = None) -> TalkListAnswer:
    """Threads, questions and chats: what needs the person's answer first, then the newest."""

    def look(uow: UnitOfWork) -> TalkListAnswer:
        found = list_talk(uow, limit=min(limit, MOST))
        return {
            "entries": [_entry(each) for each in found.entries],
            "total": found.total,
            "unread": found.unread,
            "unanswered": found.unanswered,
            "now": uow.now,
            **past_note(uow),
        }

    return app.read(Area.WORK, look, at=at)


def show(app: AppContext, *, id: str, at: Position | None = None) -> TalkTextAnswer:  # noqa: A002
    """A thread, a question or a chat with its lines, and the operation that answers it."""

    def look(uow: UnitOfWork) -> TalkTextAnswer:
        found = show_talk(uow, id)
        return {
            "entry": _entry(found.entry),
            "shown": [_line(each) for each in found.lines],
            "reply": _reply(found),
            **past_note(uow),
        }

    return app.read(Area.WORK, look, at=at)


def _reply(found: TalkText) -> ReplyAnswer | None:
    if found.reply_to is None:
        return None
    if found.entry.kind == "thread":
        return {"method": "message.reply", "params": {"message": found.reply_to}, "text": "content"}
    if found.entry.kind == "question":
        given = {"conversation": found.reply_to}
        return {"method": "conversation.answer", "params": given, "text": "text"}
    given = {"chat_session": found.reply_to, "role": "user"}
    return {"method": "chat.post", "params": given, "text": "content"}


def _entry(entry: TalkEntry) -> TalkEntryAnswer:
    return {
        "id": entry.id,
        "kind": entry.kind,
        "title": entry.title,
        "agents": list(entry.agents),
        "last": _line(entry.last),
        "lines": entry.lines,
        "unread": entry.unread,
        "needs_answer": entry.needs_answer,
        "open": entry.is_open,
        "task_id": entry.task_id,
    }


def _line(line: TalkLine) -> TalkLineAnswer:
    return {
        "id": line.id,
        "at": line.at,
        "by": line.by,
        "to": line.to,
        "text": line.text,
        "status": line.status,
        "requires_response": line.requires_response,
    }
