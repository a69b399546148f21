"""Advice from the record of every store: for a project, for a language, and at all."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from herdbook.domain.errors import NotFound
from herdbook.domain.grading import Grade
from herdbook.domain.record.leaderboard import monday_of
from herdbook.domain.record.model import Commit, Retrospective
from herdbook.domain.record.observations import Setup
from herdbook.domain.record.setup_advice import ENOUGH, Verdict
from herdbook.domain.record.standing import EntryContext, bug_entry, commit_entry
from herdbook.services.record.leaderboard import Leaderboard, leaderboard
from herdbook.services.record.setup_advice import EVERYWHERE, EXPLANATION, ScopedAdvice, advise
from tests.contract.turns import Begin

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
MANY = 60


@pytest.fixture
def space(space: str) -> str:
    """The record is kept in spaces of its own."""
    return f"record/{space.partition('/')[2]}"


def work(
    begin: Begin,
    model: str,
    count: int,
    *,
    project: str = "app",
    grade: Grade = Grade.GOOD,
    bugs: int = 0,
    task: str = "x",
) -> None:
    """Let an agent named after its model and project make commits that are graded, some with bugs.

    Each bug is found between a commit and the next.
    """
    agent = f"{model} of {project}"
    entries, commits, retrospectives = [], [], []
    for number in range(count):
        at = START + timedelta(minutes=number)
        on = EntryContext(agent, at, project=project, provider="claude", model=model)
        entries.append(commit_entry(on))
        if number < bugs:
            entries.append(bug_entry(on._replace(at=at + timedelta(seconds=1))))
        key = {"agent": agent, "project": project, "commit_hash": f"c{number}", "task": task}
        commits.append(Commit(**key, experience_gained=5, at=at))
        retrospectives.append(
            Retrospective(
                **key,
                agent_grade=grade,
                user_grade=grade,
                score_before=60,
                score_after=64,
                user_note=f"{model} {grade.label}",
                at=at,
            )
        )
    with begin() as uow:
        uow.ledger.add_all(entries)
        uow.commits.add_all(commits)
        uow.retrospectives.add_all(retrospectives)
        uow.commit()


def ask(begin: Begin, **given: Any) -> ScopedAdvice:
    """Ask in a transaction that only reads."""
    with begin(write=False) as uow:
        return advise(uow, **given)


def models(counsel: ScopedAdvice) -> list[str | None]:
    """Give the models in the order they are ranked."""
    return [each.setup.model for each in counsel.advice.ranked]


def test_the_better_setup_is_ranked_first(begin: Begin) -> None:
    """With its numbers, their intervals and the words for and against it, whole and explained."""
    work(begin, "fine", MANY, grade=Grade.EXCELLENCE)
    work(begin, "poor", MANY, grade=Grade.BAD, bugs=20)
    counsel = ask(begin)
    assert (counsel.scope, counsel.projects, counsel.passed_over) == (EVERYWHERE, 1, ())
    assert counsel.advice.verdict is Verdict.BETTER
    assert counsel.advice.leaders == (Setup("claude", "fine"),)
    fine, poor = counsel.advice.ranked
    assert (fine.commits, fine.bugs, fine.grades) == (MANY, 0, MANY)
    assert (poor.commits, poor.bugs, poor.grades) == (MANY, 20, MANY)
    assert poor.bug_rate.low < 1 / 3 < poor.bug_rate.high
    assert fine.praise is not None
    assert (fine.praise.note, fine.blame) == ("fine excellent", None)
    assert poor.blame is not None
    assert (poor.blame.note, poor.praise) == ("poor bad", None)
    assert counsel.explanation == EXPLANATION
    assert "\n" not in EXPLANATION


def test_a_little_data_is_called_too_little(begin: Begin) -> None:
    """In plain words, and nobody leads."""
    work(begin, "fine", ENOUGH)
    work(begin, "new", ENOUGH - 1)
    counsel = ask(begin)
    assert counsel.advice.verdict is Verdict.TOO_LITTLE_DATA
    assert counsel.advice.words.endswith("2 setups with 10 commits each; you have 1")
    assert counsel.advice.leaders == ()


def test_an_empty_record_advises_nothing(begin: Begin) -> None:
    """It is not enough data, whatever is asked for."""
    counsel = ask(begin, project="app", language="rust")
    assert (counsel.scope, counsel.projects) == (EVERYWHERE, 0)
    assert counsel.advice.ranked == ()
    assert counsel.advice.verdict is Verdict.TOO_LITTLE_DATA


def _two_worlds(begin: Begin) -> None:
    """What is best in the project `app`, in Rust, is worst elsewhere, in Python."""
    work(begin, "a", MANY, grade=Grade.EXCELLENCE, task="tidy main.rs")
    work(begin, "b", MANY, grade=Grade.BAD, task="tidy lib.rs")
    work(begin, "a", 2 * MANY, project="lib", grade=Grade.BAD, task="tidy main.py")
    work(begin, "b", 2 * MANY, project="lib", grade=Grade.EXCELLENCE, task="tidy lib.py")


def test_advice_for_a_project_is_from_that_project(begin: Begin) -> None:
    """Under any of its names, where it has enough data of its own."""
    _two_worlds(begin)
    assert models(ask(begin)) == ["b", "a"]
    counsel = ask(begin, project="app")
    assert models(counsel) == ["a", "b"]
    assert (counsel.scope, counsel.projects, counsel.passed_over) == ("project app", 1, ())
    counsel = ask(begin, project="/src/app", also=["app"])
    assert (models(counsel), counsel.projects) == (["a", "b"], 1)


def test_advice_for_a_language_is_from_projects_in_it(begin: Begin) -> None:
    """As the record speaks of them, unless their files tell otherwise."""
    _two_worlds(begin)
    counsel = ask(begin, language="rust")
    assert models(counsel) == ["a", "b"]
    assert (counsel.scope, counsel.projects) == ("projects in rust", 1)
    assert models(ask(begin, language="python")) == ["b", "a"]
    told = {"app": "zig", "lib": "rust"}
    assert models(ask(begin, language="rust", languages=told)) == ["b", "a"]


def test_where_a_part_is_too_little_a_wider_one_counts(begin: Begin) -> None:
    """First the project, then its language, then everything; what was not enough is said."""
    _two_worlds(begin)
    work(begin, "a", 1, project="new", task="begin main.rs")
    counsel = ask(begin, project="new", language="rust")
    assert (counsel.scope, counsel.projects) == ("projects in rust", 2)
    assert models(counsel) == ["a", "b"]
    (reason,) = counsel.passed_over
    assert reason.startswith("project new: not enough data: a comparison needs 2 setups")
    counsel = ask(begin, project="new", language="zig")
    assert counsel.scope == EVERYWHERE
    assert [each.partition(":")[0] for each in counsel.passed_over] == [
        "project new",
        "projects in zig",
    ]
    assert models(counsel) == ["b", "a"]


def test_a_bug_counts_against_its_commit_in_every_part(begin: Begin) -> None:
    """Narrowing the advice to a project moves no bug to another commit."""
    work(begin, "a", MANY, bugs=7)
    work(begin, "b", MANY)
    work(begin, "a", MANY, project="lib")
    ranked = {each.setup.model: each for each in ask(begin, project="app").advice.ranked}
    assert (ranked["a"].bugs, ranked["a"].commits) == (7, MANY)
    assert (ranked["b"].bugs, ranked["b"].commits) == (0, MANY)
    assert ask(begin, project="lib").passed_over != ()


def list_setups(begin: Begin, **given: Any) -> Leaderboard:
    """Ask for the list of setups in a transaction that only reads."""
    with begin(write=False) as uow:
        return leaderboard(uow, **given)


def seen_of(found: Leaderboard) -> dict[str | None, int]:
    """How much was seen of each model, in the order of their ranks."""
    return {each.record.setup.model: each.record.observations for each in found.setups}


def test_a_list_of_setups_is_of_exactly_what_is_asked_for(begin: Begin) -> None:
    """A project or a language that tells little is not widened; what there is, is counted."""
    work(begin, "fine", MANY, project="crate", grade=Grade.EXCELLENCE, task="in lib.rs")
    work(begin, "poor", MANY, project="crate", grade=Grade.BAD, bugs=20, task="in lib.rs")
    work(begin, "fine", 3, project="site", task="style.css")
    work(begin, "new", 4, project="tool", task="main.rs")
    everywhere = list_setups(begin)
    assert everywhere.scope == EVERYWHERE
    assert seen_of(everywhere) == {"fine": MANY + 3, "poor": MANY, "new": 4}
    assert [tuple(each) for each in everywhere.projects] == [
        ("crate", "rust", 2 * MANY),
        ("tool", "rust", 4),
        ("site", "css", 3),
    ]
    assert [tuple(each) for each in everywhere.languages] == [
        ("rust", 2, 2 * MANY + 4),
        ("css", 1, 3),
    ]
    assert [each.tells for each in everywhere.setups] == [
        "better than the others",
        "behind the first",
        "too little to tell: 4 of 10 commits",
    ]
    in_rust = list_setups(begin, language="rust")
    assert (in_rust.scope, seen_of(in_rust)) == (
        "projects in rust",
        {"fine": MANY, "poor": MANY, "new": 4},
    )
    site = list_setups(begin, project="site")
    assert (site.scope, seen_of(site)) == ("project site", {"fine": 3})
    assert site.advice.verdict is Verdict.TOO_LITTLE_DATA
    assert site.projects == everywhere.projects
    both = list_setups(begin, project="site", language="rust")
    assert (both.scope, seen_of(both)) == ("project site in rust", {})


def test_a_list_of_setups_has_the_mix_of_grades_and_the_weeks(begin: Begin) -> None:
    """The weeks end with this one, and the grades are those of the person."""
    work(begin, "fine", 3, grade=Grade.GOOD)
    work(begin, "fine", 2, project="lib", grade=Grade.BAD, bugs=1)
    (fine,) = list_setups(begin, weeks=5).setups
    assert fine.grade_mix == {
        Grade.BAD: 2,
        Grade.NEUTRAL: 0,
        Grade.GOOD: 3,
        Grade.EXCELLENT: 0,
    }
    assert fine.merit.low < fine.record.merit < fine.merit.high
    assert len(fine.weeks) == 5
    with begin(write=False) as uow:
        now = uow.now
    back = (monday_of(now) - monday_of(START)).days // 7
    (fine,) = list_setups(begin, weeks=back + 1).setups
    assert fine.weeks[0]._replace(mean_grade=None) == (monday_of(START), 5, 5, 1, None)
    assert fine.weeks[0].mean_grade == pytest.approx((3 * 2 - 2) / 5)


def test_other_names_of_a_project_are_its_own(begin: Begin) -> None:
    """And what its files show is its language."""
    work(begin, "fine", 2, project="app-123", task="in lib.rs")
    work(begin, "fine", 1, project="/src/app")
    named = {"names": {"/src/app": "app-123"}, "known_languages": {"app-123": "python"}}
    found = list_setups(begin, project="app-123", language="python", **named)
    assert seen_of(found) == {"fine": 3}
    assert [tuple(each) for each in found.projects] == [("app-123", "python", 3)]


@pytest.mark.parametrize("asked", [{"project": "no such"}, {"language": "cobol"}])
def test_a_list_of_what_the_record_does_not_have_is_refused(
    begin: Begin, asked: dict[str, str]
) -> None:
    """With what it has; an empty record has nothing."""
    with pytest.raises(NotFound, match="the record has no work yet"):
        list_setups(begin, **asked)
    work(begin, "fine", 1, task="in lib.rs")
    with pytest.raises(NotFound, match=r"the record has (app|rust)"):
        list_setups(begin, **asked)
