"""Remarks on phases' diffs, in threads that are resolved as a whole."""

import pytest

from herdbook.domain.entity import evolve
from herdbook.domain.errors import InvalidValue, NotFound, UnknownReference
from herdbook.domain.plan.model import LineType, ReviewComment
from herdbook.ports.engine.dictionary import PHASES, REVIEW_COMMENTS
from herdbook.ports.engine.query import find
from herdbook.services.plan import reviews
from herdbook.services.plan.reviews import CommentThread
from tests.contract.claims import do
from tests.contract.rows import make
from tests.contract.turns import Begin

PLACE = {"file_path": "src/a.py", "line_number": 7, "line_type": LineType.REMOVED}


def _phase(begin: Begin) -> str:
    return do(begin, lambda uow: make(uow, PHASES).id)


def _thread(begin: Begin) -> tuple[str, ReviewComment, ReviewComment, ReviewComment]:
    """A phase, and on it a remark, a reply, and a reply to that."""
    phase = _phase(begin)
    first = do(begin, reviews.comment, phase, "Why?", **PLACE)
    second = do(begin, reviews.reply, first.id, "Because.", author="otter")
    third = do(begin, reviews.reply, second.id, "Ah.")
    return phase, first, second, third


def test_a_remark_stands_at_a_line(begin: Begin) -> None:
    """It is unresolved, and yours unless somebody else is named."""
    phase = _phase(begin)
    remark = do(begin, reviews.comment, phase, "Why?", **PLACE)
    assert (remark.phase_id, remark.body, remark.author) == (phase, "Why?", "you")
    assert {name: getattr(remark, name) for name in PLACE} == PLACE
    assert (remark.resolved, remark.parent_comment_id) == (False, None)


def test_a_reply_stands_where_its_thread_does(begin: Begin) -> None:
    """And hangs on the first remark, whichever of the thread it answers."""
    phase, first, second, third = _thread(begin)
    for each, author in ((second, "otter"), (third, "you")):
        assert (each.phase_id, each.parent_comment_id, each.author) == (phase, first.id, author)
        assert {name: getattr(each, name) for name in PLACE} == PLACE


def test_the_threads_of_a_phase_are_told_whole(begin: Begin) -> None:
    """Oldest first, all or those that are resolved or not, and none of another phase."""
    phase, first, second, third = _thread(begin)
    other = do(begin, reviews.comment, phase, "And here?", **PLACE)
    do(begin, reviews.comment, _phase(begin), "Elsewhere", **PLACE)
    solved = do(begin, reviews.resolve, other.id)
    with begin(write=False) as uow:
        open_one, closed = CommentThread(first, (second, third)), CommentThread(solved, ())
        assert reviews.threads(uow, phase) == [open_one, closed]
        assert reviews.threads(uow, phase, resolved=False) == [open_one]
        assert reviews.threads(uow, phase, resolved=True) == [closed]
        with pytest.raises(NotFound):
            reviews.threads(uow, "nothing")


def test_a_thread_is_resolved_through_any_of_its_remarks(begin: Begin) -> None:
    """Its first remark keeps it, and so it is taken up again."""
    _, first, _, third = _thread(begin)
    resolved = do(begin, reviews.resolve, third.id)
    assert resolved == evolve(first, resolved=True, version=2, updated_at=resolved.updated_at)
    again = do(begin, reviews.unresolve, third.id)
    assert (again.id, again.resolved, again.version) == (first.id, False, 3)


def test_resolving_what_is_resolved_writes_nothing(begin: Begin) -> None:
    """Neither does taking up what is open."""
    _, first, _, third = _thread(begin)
    assert do(begin, reviews.unresolve, third.id) == first
    resolved = do(begin, reviews.resolve, first.id)
    assert do(begin, reviews.resolve, third.id) == resolved


def test_a_reply_leaves_a_resolved_thread_resolved(begin: Begin) -> None:
    """Somebody may say thanks."""
    phase, first, *_ = _thread(begin)
    do(begin, reviews.resolve, first.id)
    reply = do(begin, reviews.reply, first.id, "Thanks")
    with begin(write=False) as uow:
        (thread,) = reviews.threads(uow, phase)
    assert thread.first.resolved
    assert (thread.replies[-1], reply.resolved) == (reply, False)


def test_a_remark_that_is_its_own_ancestor_can_be_answered(begin: Begin) -> None:
    """Older stores may hold one, and nothing goes round forever."""
    _, first, second, _ = _thread(begin)
    with begin() as uow:
        uow.session.replace(REVIEW_COMMENTS, [evolve(first, parent_comment_id=second.id)])
        uow.commit()
    reply = do(begin, reviews.reply, first.id, "Well")
    assert reply.parent_comment_id == second.id


def test_a_remark_needs_a_place(begin: Begin) -> None:
    """A phase that is there, and a line that is counted from one."""
    phase = _phase(begin)
    with pytest.raises(UnknownReference):
        do(begin, reviews.comment, "nothing", "Why?", **PLACE)
    with pytest.raises(InvalidValue, match="line_number"):
        do(begin, reviews.comment, phase, "Why?", **{**PLACE, "line_number": 0})
    for act in (reviews.resolve, reviews.unresolve):
        with pytest.raises(NotFound):
            do(begin, act, "nothing")
    with begin(write=False) as uow:
        assert uow.select(find(REVIEW_COMMENTS)) == []
