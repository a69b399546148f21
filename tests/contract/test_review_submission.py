"""Comments that are submitted together, and what waits for a review, on every store."""

from typing import Any

import pytest

from herdbook.domain.conversation import MessageStatus, Party
from herdbook.domain.entity import evolve
from herdbook.domain.errors import InvalidValue, NotFound
from herdbook.domain.plan.model import (
    Errand,
    ErrandStatus,
    LineType,
    Phase,
    PhaseStatus,
    Project,
    Task,
    TaskStatus,
)
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services import messaging
from herdbook.services.plan import claims, errands, reviews
from herdbook.services.plan.review_queue import ReviewEntry, review_queue
from herdbook.services.plan.review_subjects import ReviewSubject, find_subject
from herdbook.services.plan.reviews import MOST_COMMENTS, NewComment
from tests.contract.claims import (
    add_agents,
    add_initiative,
    add_tasks,
    claim_for,
    do,
)
from tests.contract.turns import Begin


def subject(begin: Begin, named: str) -> ReviewSubject:
    with begin(write=False) as uow:
        return find_subject(uow, named)


def queue(begin: Begin) -> list[ReviewEntry]:
    with begin(write=False) as uow:
        return review_queue(uow)


def new_phase(begin: Begin, initiative_id: str, name: str = "phase") -> Phase:
    new = Phase(name=name, initiative_id=initiative_id, status=PhaseStatus.APPROVED)
    added: Phase = do(begin, lambda uow: uow.phases.add(new))
    return added


def in_review(begin: Begin) -> tuple[str, str, str]:
    """An agent, and a phase with a task that the agent has done."""
    (agent,) = add_agents(begin)
    phase = new_phase(begin, add_initiative(begin).id)
    (task,) = add_tasks(begin, Task(name="do x", phase_id=phase.id))
    claim = claim_for(begin, agent, task_id=task.id)
    do(begin, claims.complete, task.id, claim.fence)
    return agent, phase.id, task.id


def line(body: str, number: int = 1, **more: Any) -> NewComment:
    return NewComment(body, file_path="a.py", line_number=number, **more)


def test_comments_are_submitted_in_one_transaction_with_one_message(begin: Begin) -> None:
    """Each has its lines with their text; the message says where they are and how to read them."""
    agent, phase, _ = in_review(begin)
    place = {"file_path": "b.py", "line_number": 3, "line_type": LineType.ADDED}
    first = do(begin, reviews.comment, phase, "old", **place)
    new = line("why?", 7, last_line=9, line_text="x\ny\nz", commit_hash="0" * 40)
    answer = do(
        begin, reviews.submit, phase, [new, NewComment("so", reply_to=first.id)], recipient_id=agent
    )
    told, replied = answer.comments
    assert (told.line_number, told.last_line, told.line_text) == (7, 9, "x\ny\nz")
    assert (told.line_type, told.commit_hash) == (LineType.ADDED, "0" * 40)
    assert (replied.parent_comment_id, replied.file_path) == (first.id, "b.py")
    assert {each.message_id for each in answer.comments} == {answer.message.id}
    assert answer.message.recipient_id == agent
    assert answer.message.sender_type is Party.USER
    assert "a.py:7: why?" in answer.message.content
    assert "b.py:3 (reply): so" in answer.message.content
    assert f"herdbook review threads {phase}" in answer.message.content
    with begin(write=False) as uow:
        entries = [each for each in uow.journal.since(0) if each.key == told.id]
        sent = [each for each in uow.journal.since(0) if each.key == answer.message.id]
    assert entries[0].tx == sent[0].tx


def test_a_comment_outlives_the_message_about_it(begin: Begin) -> None:
    """And says no longer that it was sent."""
    agent, phase, _ = in_review(begin)
    answer = do(begin, reviews.submit, phase, [line("why?")], recipient_id=agent)
    do(begin, lambda uow: uow.messages.remove(answer.message.id))
    with begin(write=False) as uow:
        (thread,) = reviews.threads(uow, phase)
    assert thread.first.message_id is None


def test_whether_it_was_read_is_the_message_s_to_tell(begin: Begin) -> None:
    agent, phase, _ = in_review(begin)
    message = do(begin, reviews.submit, phase, [line("why?")], recipient_id=agent).message
    assert message.status is MessageStatus.PENDING
    assert do(begin, messaging.read, message.id).status is MessageStatus.READ


@pytest.mark.parametrize(
    "comments",
    [[], [line("x")] * (MOST_COMMENTS + 1), [line("good"), line(" \n")]],
    ids=["none", "too many", "without text"],
)
def test_a_batch_that_is_refused_writes_nothing(begin: Begin, comments: list[NewComment]) -> None:
    agent, phase, _ = in_review(begin)
    with pytest.raises(InvalidValue):
        do(begin, reviews.submit, phase, comments, recipient_id=agent)
    with begin(write=False) as uow:
        assert reviews.threads(uow, phase) == []
        assert uow.messages.page() == []


def test_comments_of_one_moment_are_in_the_order_of_their_lines(begin: Begin) -> None:
    _, phase, _ = in_review(begin)
    do(begin, reviews.submit, phase, [line(str(n), n) for n in (5, 2, 9, 1)])
    with begin(write=False) as uow:
        assert [each.first.line_number for each in reviews.threads(uow, phase)] == [1, 2, 5, 9]


def test_a_subject_is_found_by_its_id_or_name_among_all_kinds(begin: Begin) -> None:
    """With the agents that worked on it, and the phases whose comments it has."""
    agent, phase, task = in_review(begin)
    for named in (phase, phase[:12], phase.removeprefix("pha_")):
        found = subject(begin, named)
        assert (found.kind, found.id, found.phase_id) == ("phase", phase, phase)
        assert [each.id for each in found.agents] == [agent]
    of_task = subject(begin, "do x")
    assert (of_task.kind, of_task.id, of_task.phase_id) == ("task", task, phase)
    whole = subject(begin, found.initiative_id or "")
    assert (whole.kind, whole.phase_id, whole.phase_ids) == ("initiative", phase, (phase,))
    with pytest.raises(NotFound):
        subject(begin, "nothing of that name")
    new_phase(begin, whole.id, "do x")
    with pytest.raises(InvalidValue, match="could be any of"):
        subject(begin, "do x")


def test_an_errand_has_branches_and_no_phase(begin: Begin) -> None:
    project = do(begin, lambda uow: uow.projects.add(Project(name="app", url="u")))
    errand: Errand = do(begin, errands.start, project.id, "fix\nit", "typo")
    found = subject(begin, errand.id)
    assert (found.name, found.branch, found.base_branch) == ("fix", "typo", "main")
    assert (found.phase_id, found.phase_ids, found.steps) == (None, (), ())
    do(begin, errands.change_status, errand.id, ErrandStatus.CONFLICT)
    assert [each.label for each in subject(begin, errand.id).steps] == [
        "Merged",
        "Back to work",
        "Abandon",
    ]


def test_the_queue_has_what_was_handed_in_and_then_what_is_under_way(begin: Begin) -> None:
    """With its comments; what is completed or sent back has left it."""
    (agent,) = add_agents(begin)
    initiative = add_initiative(begin)
    open_ = new_phase(begin, initiative.id)
    add_tasks(begin, Task(name="y", phase_id=open_.id), Task(name="z", phase_id=open_.id))
    claim_for(begin, agent)
    _, phase, _ = in_review(begin)
    do(begin, reviews.submit, phase, [line("a"), line("b", 2)])
    with begin(write=False) as uow:
        first = reviews.threads(uow, phase)[0].first
    do(begin, reviews.resolve, first.id)
    waiting, under_way = queue(begin)
    assert (waiting.id, waiting.is_waiting, waiting.kind) == (phase, True, "phase")
    assert (waiting.threads, waiting.open_threads) == (2, 1)
    assert (under_way.id, under_way.is_waiting, under_way.steps) == (open_.id, False, ())
    for status, left in (("in_progress", [True, False]), ("completed", [True])):
        do(begin, lambda uow, to=status: _set_phase(uow, phase, to))
        assert [each.id == open_.id for each in queue(begin)].count(True) == 1
        assert len(queue(begin)) == len(left)


def _set_phase(uow: UnitOfWork, key: str, status: str) -> None:
    uow.phases.save(evolve(uow.phases.get(key), status=PhaseStatus(status)))


def test_the_review_of_a_task_ends_under_its_fence(begin: Begin) -> None:
    """Whoever completes or returns it means the work that was handed in."""
    (agent,) = add_agents(begin)
    initiative = add_initiative(begin, quality_review=True)
    (task,) = add_tasks(begin, Task(name="x", initiative_id=initiative.id))
    claim = claim_for(begin, agent)
    handed_in: Task = do(begin, claims.complete, task.id, claim.fence)
    (entry,) = queue(begin)
    assert (entry.kind, entry.id, entry.is_waiting) == ("task", task.id, True)
    steps = {each.label: (each.method, each.params) for each in entry.steps}
    assert steps == {
        "Complete": ("task.done", {"task": task.id, "fence": handed_in.fence}),
        "Back to work": ("task.fail", {"task": task.id, "fence": handed_in.fence}),
    }
    again: Task = do(begin, claims.fail, task.id, handed_in.fence)
    assert again.status is TaskStatus.PENDING
    assert queue(begin) == []
