"""What is said, in one list: `talk list` and `talk show`."""

from datetime import datetime
from typing import Any, NotRequired, TypedDict

from herdbook.domain.journal import Position
from herdbook.domain.location.areas import Area
from herdbook.entrypoints.context import AppContext
from herdbook.entrypoints.operations.answer_fields import answer_from
from herdbook.entrypoints.operations.past_answer import PastAnswer, past_note
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services.talk import TalkEntry, TalkLine, TalkText, list_talk, show_talk

MOST = 1_000
"""How many may be asked for."""


class TalkListAnswer(TypedDict):
    """The first of them, how many there are, and how many messages wait for the person."""

    entries: list[TalkEntry]
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

    entry: TalkEntry
    shown: list[TalkLine]
    reply: ReplyAnswer | None
    as_of: NotRequired[PastAnswer]


def list_(app: AppContext, *, limit: int, at: Position | None = None) -> TalkListAnswer:
    """Threads, questions and chats: what needs the person's answer first, then the newest."""

    def look(uow: UnitOfWork) -> TalkListAnswer:
        found = list_talk(uow, limit=min(limit, MOST))
        return answer_from(TalkListAnswer, found, now=uow.now, **past_note(uow))

    return app.read(Area.WORK, look, at=at)


def show(app: AppContext, *, id: str, at: Position | None = None) -> TalkTextAnswer:  # noqa: A002
    """A thread, a question or a chat with its lines, and the operation that answers it."""

    def look(uow: UnitOfWork) -> TalkTextAnswer:
        found = show_talk(uow, id)
        return {
            "entry": found.entry,
            "shown": found.lines,
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
