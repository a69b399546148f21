"""Review comments on the diff of a phase, in threads of a first comment and its replies.

A thread is resolved as a whole; its first comment holds whether it is.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from herdbook.domain.conversation import Message
from herdbook.domain.entity import evolve
from herdbook.domain.errors import InvalidValue
from herdbook.domain.plan.model import LineType, ReviewComment
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services import messaging

YOU = "you"
"""The author of a comment if none is given."""


MOST_COMMENTS: Final = 500
"""How many comments one submission may have."""
_SHOWN: Final = 200
"""How many characters of a comment are repeated in the message that announces it."""
_LISTED: Final = 20
"""How many comments that message lists."""


class NewComment(NamedTuple):
    """A comment that was written and not yet submitted: on lines, or a reply to another comment."""

    body: str
    reply_to: str | None = None
    file_path: str = ""
    line_number: int = 1
    line_type: LineType = LineType.ADDED
    last_line: int | None = None
    line_text: str | None = None
    commit_hash: str | None = None


class SubmittedReview(NamedTuple):
    """The comments that were added together, and the message that told an agent of them."""

    comments: tuple[ReviewComment, ...]
    message: Message | None


class CommentThread(NamedTuple):
    """A first comment and its replies, oldest first."""

    first: ReviewComment
    replies: tuple[ReviewComment, ...]


def comment(
    uow: UnitOfWork,
    phase_id: str,
    body: str,
    *,
    file_path: str,
    line_number: int,
    line_type: LineType,
    author: str = YOU,
) -> ReviewComment:
    """Start a thread at a line of a phase's diff; a removed line has its old number."""
    new = NewComment(body, None, file_path, line_number, line_type)
    return _add_new(uow, phase_id, new, author, None)


def reply(
    uow: UnitOfWork, comment_id: str, body: str, *, author: str | None = None
) -> ReviewComment:
    """Add a reply to the thread of any of its comments.

    Its author is by default who acts. The reply has the file and line of the thread. Whether the
    thread is resolved does not change.
    """
    return _add_reply(uow, comment_id, body, author or uow.actor.agent or YOU)


def _add_reply(
    uow: UnitOfWork, comment_id: str, body: str, author: str, message_id: str | None = None
) -> ReviewComment:
    first = _first_comment(uow, comment_id)
    return uow.review_comments.add(
        ReviewComment(
            phase_id=first.phase_id,
            parent_comment_id=first.id,
            file_path=first.file_path,
            line_number=first.line_number,
            line_type=first.line_type,
            body=body,
            author=author,
            message_id=message_id,
        )
    )


def submit(
    uow: UnitOfWork,
    phase_id: str,
    comments: Sequence[NewComment],
    *,
    author: str | None = None,
    sender_id: str | None = None,
    recipient_id: str | None = None,
) -> SubmittedReview:
    """Add comments to a phase together, and tell an agent of them in one message.

    Their author is by default who acts. Raises InvalidValue if there is none, or too many, or one
    without text; then nothing is written.
    """
    if not 0 < len(comments) <= MOST_COMMENTS:
        raise InvalidValue("comments", f"must be 1 to {MOST_COMMENTS}, are {len(comments)}")
    if not all(each.body.strip() for each in comments):
        raise InvalidValue("comments", "one of them has no text")
    phase = uow.phases.get(phase_id)
    message = None
    if recipient_id is not None:
        content = _announce(uow, phase.name, phase.id, comments)
        message = messaging.send(uow, content, sender_id=sender_id, recipient_id=recipient_id)
    name = author or uow.actor.agent or YOU
    added = [
        _add_new(uow, phase.id, each, name, None if message is None else message.id)
        for each in comments
    ]
    return SubmittedReview(tuple(added), message)


def _announce(uow: UnitOfWork, phase: str, phase_id: str, comments: Sequence[NewComment]) -> str:
    """The message about comments: where they are and how they begin."""
    several = "s" if len(comments) > 1 else ""
    lines = [f"{len(comments)} review comment{several} on your work in phase {phase}:"]
    for each in comments[:_LISTED]:
        first = None if each.reply_to is None else _first_comment(uow, each.reply_to)
        path = each.file_path if first is None else first.file_path
        line = each.line_number if first is None else first.line_number
        body = " ".join(each.body.split())
        cut = f"{body[:_SHOWN]}…" if len(body) > _SHOWN else body
        lines.append(f"- {path}:{line}{' (reply)' if first else ''}: {cut}")
    if len(comments) > _LISTED:
        lines.append(f"- and {len(comments) - _LISTED} more")
    how = f"`herdbook review threads {phase_id}` shows them with their code"
    return "\n".join([*lines, f"{how}; `herdbook review resolve ID` resolves one that is done."])


def _add_new(
    uow: UnitOfWork, phase_id: str, new: NewComment, author: str, message_id: str | None
) -> ReviewComment:
    if new.reply_to is not None:
        return _add_reply(uow, new.reply_to, new.body, author, message_id)
    fields = {name: value for name, value in new._asdict().items() if name != "reply_to"}
    return uow.review_comments.add(
        ReviewComment(phase_id=phase_id, author=author, message_id=message_id, **fields)
    )


def resolve(uow: UnitOfWork, comment_id: str) -> ReviewComment:
    """Mark the thread of a comment as resolved; returns its first comment."""
    return _mark(uow, comment_id, resolved=True)


def unresolve(uow: UnitOfWork, comment_id: str) -> ReviewComment:
    """Mark the thread of a comment as not resolved; returns its first comment."""
    return _mark(uow, comment_id, resolved=False)


def threads(uow: UnitOfWork, phase_id: str, *, resolved: bool | None = None) -> list[CommentThread]:
    """The threads of a phase, oldest first; with `resolved`, only those that are or are not.

    Those that were submitted together are in the order of their lines.
    """
    remarks = uow.review_comments.of_phase(uow.phases.get(phase_id).id)
    remarks.sort(key=lambda each: (each.created_at, each.file_path, each.line_number))
    replies: dict[str, list[ReviewComment]] = {}
    for each in remarks:
        if each.parent_comment_id is not None:
            replies.setdefault(_first_comment(uow, each.id).id, []).append(each)
    return [
        CommentThread(each, tuple(replies.get(each.id, ())))
        for each in remarks
        if each.parent_comment_id is None and resolved in (None, each.resolved)
    ]


def _mark(uow: UnitOfWork, comment_id: str, *, resolved: bool) -> ReviewComment:
    first = _first_comment(uow, comment_id)
    if first.resolved is resolved:
        return first
    return uow.review_comments.save(evolve(first, resolved=resolved))


def _first_comment(uow: UnitOfWork, comment_id: str) -> ReviewComment:
    """The first comment of a thread.

    In a store of an older version a comment may be its own ancestor; the walk ends before it
    repeats itself.
    """
    remark = uow.review_comments.get(comment_id)
    seen = {remark.id}
    while remark.parent_comment_id is not None and remark.parent_comment_id not in seen:
        remark = uow.review_comments.get(remark.parent_comment_id)
        seen.add(remark.id)
    return remark
