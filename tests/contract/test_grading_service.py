"""What people judge of agents' work, on every store."""

import pytest

from herdbook.adapters.hosts import parse_event
from herdbook.domain.errors import AlreadyExists, InvalidValue
from herdbook.domain.grading import Grade
from herdbook.domain.record.model import EventKind
from herdbook.ports.engine.store import Store
from herdbook.ports.unit_of_work.projections import find_differences
from herdbook.ports.unit_of_work.run import read, run
from herdbook.services.record import grading, record_ingest
from herdbook.services.record.grading import GradeResult

COMMIT = ("otter", "app", "c0ffee")


@pytest.fixture
def record(space: str) -> str:
    return space.replace("work", "record", 1)


def judge(store: Store, record: str, *words: str, **grades: Grade | str) -> GradeResult:
    """Grade a commit, by both parties unless told otherwise."""
    given = grades or {"agent_grade": Grade.GOOD, "user_grade": Grade.EXCELLENCE}
    return run(store, record, grading.grade, *(words or COMMIT), **given)


def test_both_parties_make_a_retrospective(store: Store, record: str) -> None:
    """It tells the score before and after, and a point of experience comes with it."""
    graded = judge(store, record)
    retro, now = graded.retrospective, graded.standing
    assert retro is not None
    assert (retro.score_before, retro.score_after) == (60, 67)
    assert (now.communication_score, now.experience_points) == (67, 1)
    assert read(store, record, grading.retrospectives) == [retro]
    assert read(store, record, find_differences) == []


def test_a_commit_is_judged_once(store: Store, record: str) -> None:
    """By the same agent in the same project; a refused judgement writes nothing."""
    judge(store, record)
    with pytest.raises(AlreadyExists):
        judge(store, record)
    with pytest.raises(AlreadyExists):
        judge(store, record, user_grade=Grade.BAD)
    assert read(store, record, lambda uow: len(uow.ledger.page())) == 1
    judge(store, record, "heron", "app", "c0ffee")
    judge(store, record, "otter", "other", "c0ffee")


@pytest.mark.parametrize("party", ["agent_grade", "user_grade"])
def test_one_party_alone_moves_the_score_and_nothing_else(
    store: Store, record: str, party: str
) -> None:
    """A ledger entry without a retrospective."""
    graded = judge(store, record, **{party: Grade.BAD})
    assert graded.retrospective is None
    assert graded.entry.kind is EventKind.COMMUNICATION
    assert (graded.standing.communication_score, graded.standing.experience_points) == (59, 0)
    assert judge(store, record).retrospective is not None


def test_a_judgement_needs_a_grade(store: Store, record: str) -> None:
    """Words alone are none."""
    with pytest.raises(InvalidValue, match="nobody has given one"):
        judge(store, record, task="fix it")


def test_a_judgement_keeps_the_setup_and_the_task_the_record_knows(
    store: Store, record: str
) -> None:
    """Who judges need not repeat them."""
    told = parse_event(
        id="1",
        at=1_700_000_000_000_000,
        event="codex:post-commit",
        env={"HERDBOOK_AGENT": "otter"},
        raw={"model": "deep"},
    )._replace(project="app", commit_hash="c0ffee", subject="fix it")
    run(store, record, record_ingest.flush, [told])
    graded = judge(store, record)
    assert graded.retrospective is not None
    assert graded.retrospective.task == "fix it"
    assert (graded.standing.provider, graded.standing.model) == ("codex", "deep")


def test_a_bug_is_written_at_once_and_the_last_skill_point_halts(store: Store, record: str) -> None:
    """Its note is kept among what the agent did."""
    now = run(store, record, grading.report_bug, "otter", "lost a row", project="app")
    assert (now.skill_points, now.bugs, now.active) == (0, 1, False)
    (activity,) = read(store, record, grading.activities, "otter")
    assert (activity.task, activity.outcome, activity.project) == ("bug", "lost a row", "app")


def test_a_person_reinstates_a_halted_agent_and_no_other(store: Store, record: str) -> None:
    """One that is not halted is left as it is."""
    with pytest.raises(InvalidValue, match="is not halted"):
        run(store, record, grading.reinstate, "otter")
    run(store, record, grading.report_bug, "otter")
    now = run(store, record, grading.reinstate, "otter", 2)
    assert (now.skill_points, now.active, now.bugs) == (2, True, 1)


def test_activities_come_latest_first_a_page_at_a_time(store: Store, record: str) -> None:
    """Of one agent or of all."""
    for number in range(5):
        agent = "otter" if number % 2 else "heron"
        run(store, record, grading.add_activity, agent, f"task {number}", outcome="done")
    page = read(store, record, grading.activities, limit=3)
    rest = read(store, record, grading.activities, limit=3, after=page[-1].id)
    assert [each.task for each in [*page, *rest]] == [f"task {each}" for each in range(4, -1, -1)]
    own = read(store, record, grading.activities, "otter")
    assert [each.task for each in own] == ["task 3", "task 1"]
