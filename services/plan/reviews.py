"""Review comments on the diff of a phase, in threads of a first comment and its replies.

A thread is resolved as a whole; its first comment holds whether it is.
"""

from typing import NamedTuple

from herdbook.domain.entity import evolve
from herdbook.domain.plan.model import LineType, ReviewComment
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork

YOU = "you"
"""The author of a comment if none is given."""


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
    return uow.review_comments.add(
        ReviewComment(
            phase_id=phase_id,
            file_path=file_path,
            line_number=line_number,
            line_type=line_type,
            body=body,
            author=author,
        )
    )


def reply(
    uow: UnitOfWork, comment_id: str, body: str, *, author: str | None = None
) -> ReviewComment:
    """Add a reply to the thread of any of its comments.

    Its author is by default who acts. The reply has the file and line of the thread. Whether the
    thread is resolved does not change.
    """
    first = _first_comment(uow, comment_id)
    return uow.review_comments.add(
        ReviewComment(
            phase_id=first.phase_id,
            parent_comment_id=first.id,
            file_path=first.file_path,
            line_number=first.line_number,
            line_type=first.line_type,
            body=body,
            author=author or uow.actor.agent or YOU,
        )
    )


def resolve(uow: UnitOfWork, comment_id: str) -> ReviewComment:
    """Mark the thread of a comment as resolved; returns its first comment."""
    return _mark(uow, comment_id, resolved=True)


def unresolve(uow: UnitOfWork, comment_id: str) -> ReviewComment:
    """Mark the thread of a comment as not resolved; returns its first comment."""
    return _mark(uow, comment_id, resolved=False)


def threads(uow: UnitOfWork, phase_id: str, *, resolved: bool | None = None) -> list[CommentThread]:
    """The threads of a phase, oldest first; with `resolved`, only those that are or are not."""
    remarks = uow.review_comments.of_phase(uow.phases.get(phase_id).id)
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
