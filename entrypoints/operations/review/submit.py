"""`review submit`: comments that were written together, with the text of their lines from git."""

from collections.abc import Mapping
from typing import Any, TypedDict

from herdbook.domain.conversation import Message
from herdbook.domain.errors import InvalidValue
from herdbook.domain.location.areas import Area
from herdbook.domain.plan.diff import ChangedFile
from herdbook.domain.plan.model import LineType, ReviewComment
from herdbook.entrypoints.context import AppContext
from herdbook.entrypoints.operations.call_use_case import find_agent_id
from herdbook.entrypoints.operations.review.answers import printable
from herdbook.entrypoints.operations.review.handlers import Comparison, compare, read_subject
from herdbook.entrypoints.operations.review.placing import is_hash
from herdbook.ports.engine.dictionary import AGENTS
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services import crud
from herdbook.services.plan import reviews
from herdbook.services.plan.review_subjects import ReviewSubject
from herdbook.services.plan.reviews import NewComment

_FIELDS = {"body", "file", "line", "last_line", "type", "commit", "reply_to"}


class SubmitAnswer(TypedDict):
    """The comments that were added, and the agent that was told of them by a message."""

    comments: list[ReviewComment]
    message: Message | None
    to: str | None


def submit(
    app: AppContext, *, subject: str, comments: Any, source: str | None, to: str | None
) -> SubmitAnswer:
    """Add comments together and tell an agent of them.

    Raises InvalidValue if one of them is not on a line of the diff, and for an errand, which has no
    phase that comments could belong to, and for an agent that is not registered; then nothing is
    written.
    """

    def look(uow: UnitOfWork) -> ReviewSubject:
        find_agent_id(app, uow, None)  # who is not known is told so first
        return read_subject(uow, subject).subject

    known = app.read(Area.WORK, look)
    if known.phase_id is None:
        reason = f"comments belong to a phase, and this {known.kind} is in none"
        raise InvalidValue("subject", f"{reason}; write to the agent by a message")
    given = _parse(comments)
    needs_lines = any(each.reply_to is None for each in given)
    found = compare(app, known, source) if needs_lines else None
    placed = [each if found is None else _add_text(found, each) for each in given]
    phase_id, agents = known.phase_id, _agents(known, found)

    def inside(uow: UnitOfWork) -> SubmitAnswer:
        sender = find_agent_id(app, uow, None)
        recipient = crud.key_of(uow, AGENTS, to) if to else next(iter(agents), None)
        added = reviews.submit(
            uow,
            phase_id,
            placed,
            sender_id=sender,
            recipient_id=None if recipient == sender else recipient,
        )
        message = added.message
        name = None if message is None else uow.agents.get(message.recipient_id or "").name
        return {"comments": list(added.comments), "message": message, "to": name}

    return app.run(Area.WORK, inside)


def _agents(subject: ReviewSubject, found: Comparison | None) -> list[str]:
    """The agents of the work, those of the worktree that is looked at first."""
    near = () if found is None or found.source is None else found.source.agents
    ordered = sorted(subject.agents, key=lambda each: each.name not in near)
    return [each.id for each in ordered]


def _parse(comments: Any) -> list[NewComment]:
    if not isinstance(comments, list):
        raise InvalidValue("comments", "must be a list of objects")
    return [_parse_one(each) for each in comments]


def _parse_one(given: Any) -> NewComment:
    if not isinstance(given, Mapping) or not isinstance(given.get("body"), str):
        raise InvalidValue("comments", "each must be an object with a text as its body")
    if unknown := sorted(set(given) - _FIELDS):
        raise InvalidValue("comments", f"{unknown[0]!r} is none of {', '.join(sorted(_FIELDS))}")
    reply_to = given.get("reply_to")
    if isinstance(reply_to, str):
        return NewComment(given["body"], reply_to=reply_to)
    path, line = given.get("file"), _number(given, "line", 0)
    last = _number(given, "last_line", line)
    if not isinstance(path, str) or not 0 < line <= last:
        raise InvalidValue("comments", "each needs a file and a line, or reply_to")
    try:
        type_ = LineType(given.get("type", LineType.ADDED))
    except ValueError as error:
        raise InvalidValue("comments", "type must be added, removed or context") from error
    commit = given.get("commit")
    if commit is not None and not (isinstance(commit, str) and is_hash(commit)):
        raise InvalidValue("comments", "commit must be the hash of a commit")
    end = None if last == line else last
    return NewComment(given["body"], None, path, line, type_, end, commit_hash=commit)


def _number(given: Mapping[str, Any], name: str, default: int) -> int:
    value = given.get(name, default)
    return value if type(value) is int else 0


def _add_text(found: Comparison, comment: NewComment) -> NewComment:
    """A comment with the text of its lines, and the commit that has them: by default the newest.

    Raises InvalidValue if its file is not in the diff, or has no such line, or if the commit that
    its author saw is not of the branch.
    """
    if comment.reply_to is not None:
        return comment
    source, git = found.source, found.git
    if git is None or source is None or source.base is None:
        raise InvalidValue("comments", f"there are no lines to comment on: {found.problem}")
    file = _find_file(found, comment.file_path)
    is_old = comment.line_type is LineType.REMOVED
    seen = comment.commit_hash or source.head
    if seen != source.head and (found.repository is None or not found.repository.has(seen, source)):
        raise InvalidValue("comments", f"{seen} is not a commit of {source.name}")
    commit, path = (source.base, file.old_path) if is_old else (seen, file.path)
    lines = git.file_lines(commit, path) or []
    last = comment.last_line or comment.line_number
    if last > len(lines):
        raise InvalidValue("comments", f"{comment.file_path!r} has no line {last}")
    text = "\n".join(printable(each) for each in lines[comment.line_number - 1 : last])
    return comment._replace(
        file_path=printable(path), line_text=text, commit_hash=None if is_old else seen
    )


def _find_file(found: Comparison, name: str) -> ChangedFile:
    for each in found.changed.files:
        if printable(each.path) == name:
            return each
    raise InvalidValue("comments", f"{name!r} is not among the files that were changed")
