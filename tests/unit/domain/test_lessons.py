"""The laws of what earlier work teaches: grades, bugs and words about an outcome."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from herdbook.domain.grading import Grade
from herdbook.domain.record.lessons import (
    Lesson,
    judge_grades,
    judge_outcome,
    work_key,
    work_with_bugs,
)
from herdbook.domain.record.model import Commit, ScoreEvent
from herdbook.domain.record.observations import observe
from herdbook.domain.record.standing import EntryContext, bug_entry, tool_entry
from tests.cases import for_each

START = datetime(2026, 1, 1, tzinfo=UTC)

minutes = st.integers(0, 5)
projects = st.sampled_from(["app", "lib"])


def at(minute: int) -> datetime:
    """Give a moment."""
    return START + timedelta(minutes=minute)


def commit(commit_hash: str, minute: int, project: str = "app") -> Commit:
    """Make a commit of the otter."""
    return Commit(
        agent="otter",
        project=project,
        commit_hash=commit_hash,
        task="x",
        experience_gained=5,
        at=at(minute),
    )


def bug(minute: int, project: str | None = None, count: int = 1) -> ScoreEvent:
    """Make an entry for bugs of the otter."""
    return bug_entry(EntryContext("otter", at(minute), id=f"e{minute}", project=project), count)


def hashes(found: set[tuple[str, str, str]]) -> set[str]:
    """Give the commits of some work."""
    return {commit_hash for _, _, commit_hash in found}


@for_each(
    ("agent_grade", "user_grade", "lesson"),
    [
        (Grade.GOOD, Grade.GOOD, Lesson.GOOD),
        (Grade.NEUTRAL, Grade.GOOD, Lesson.GOOD),
        (Grade.BAD, Grade.EXCELLENCE, Lesson.GOOD),
        (Grade.EXCELLENCE, Grade.BAD, Lesson.MISTAKE),
        (Grade.BAD, Grade.GOOD, Lesson.MISTAKE),
        (Grade.BAD, Grade.NEUTRAL, Lesson.MISTAKE),
        (Grade.NEUTRAL, Grade.NEUTRAL, Lesson.OPEN),
    ],
)
def test_grades_tell_good_work_from_mistakes(
    agent_grade: Grade, user_grade: Grade, lesson: Lesson
) -> None:
    """Above neutral it is good, below a mistake, and always one if the user finds it bad."""
    judged = judge_grades(agent_grade, user_grade)
    assert judged.lesson is lesson
    assert judged.because == (
        f"graded {user_grade.label} by the user, {agent_grade.label} by the agent"
    )


@for_each(
    ("outcome", "lesson", "because"),
    [
        ("All tests passed.", Lesson.GOOD, "its outcome says: passed"),
        ("Fixed the failing test", Lesson.GOOD, "its outcome says: fixed"),
        ("no errors, merged", Lesson.GOOD, "its outcome says: not error, merged"),
        ("It doesn't work", Lesson.MISTAKE, "its outcome says: not work"),
        ("not fully working", Lesson.MISTAKE, "its outcome says: not working"),
        ("Broke the build; reverted", Lesson.MISTAKE, "its outcome says: broke, reverted"),
        (
            "worked but failed",
            Lesson.OPEN,
            "its outcome speaks of success and of failure",
        ),
        ("", Lesson.OPEN, "nothing says how it went"),
        ("the sky is blue", Lesson.OPEN, "nothing says how it went"),
    ],
)
def test_words_about_an_outcome_tell_how_it_went(
    outcome: str, lesson: Lesson, because: str
) -> None:
    """A negation turns its clause around, a repair is no failure, and a draw is open."""
    assert judge_outcome(outcome) == (lesson, because)


def test_a_bug_is_a_mistake_of_the_last_work_before_it() -> None:
    """Of the project it names, if it names one; later work is not blamed, nor that of others."""
    made = {
        ("otter", "app", "a"): at(1),
        ("otter", "app", "b"): at(2),
        ("otter", "lib", "c"): at(3),
        ("heron", "app", "d"): at(4),
        ("otter", "app", "e"): at(9),
    }
    assert hashes(work_with_bugs(made, [bug(5)])) == {"c"}
    assert hashes(work_with_bugs(made, [bug(5, "app")])) == {"b"}
    assert hashes(work_with_bugs(made, [bug(5, "app", 2)])) == {"a", "b"}
    assert hashes(work_with_bugs(made, [bug(5), bug(6)])) == {"b", "c"}
    assert hashes(work_with_bugs(made, [bug(0)])) == set()


def test_without_bugs_nothing_is_blamed() -> None:
    """Neither by an empty ledger nor by one of other entries."""
    made = {("otter", "app", "a"): at(1)}
    assert work_with_bugs(made, []) == set()
    assert work_with_bugs(made, [tool_entry(EntryContext("otter", at(2)))]) == set()


@given(
    st.lists(st.builds(commit, st.sampled_from("abcdef"), minutes, projects), max_size=6),
    st.lists(st.builds(bug, minutes, st.none() | projects, st.integers(1, 3)), max_size=5),
)
def test_recall_and_advice_blame_the_same_number(
    commits: list[Commit], bugs: list[ScoreEvent]
) -> None:
    """At every moment and in every project as much work has a bug as `observe` finds."""
    made = {work_key(each): each.at for each in commits}
    found = work_with_bugs(made, bugs)
    seen = observe(commits, [], bugs)
    assert sorted((project, made[_, project, name]) for _, project, name in found) == sorted(
        (each.project or "", each.at) for each in seen if each.bug and each.committed
    )
