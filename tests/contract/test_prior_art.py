"""Prior art in the record: what resembles a task, good work and mistakes apart."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from herdbook.domain.errors import InvalidValue
from herdbook.domain.grading import Grade
from herdbook.domain.record.lessons import Lesson
from herdbook.domain.record.model import Activity, Commit, Retrospective
from herdbook.domain.record.standing import EntryContext, bug_entry
from herdbook.services.record.prior_art import Recall, recall
from tests.contract.turns import Begin

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
TASK = "claim a lease"


@pytest.fixture
def space(space: str) -> str:
    """The record is kept in spaces of its own."""
    return f"record/{space.partition('/')[2]}"


def at(minute: int) -> datetime:
    """Give a moment."""
    return START + timedelta(minutes=minute)


def judged(commit_hash: str, grade: Grade = Grade.GOOD, **given: Any) -> Retrospective:
    """Make a judgement on which both parties agree."""
    values = {"agent": "otter", "project": "app", "task": TASK, "at": at(9), **given}
    return Retrospective(
        commit_hash=commit_hash,
        agent_grade=grade,
        user_grade=grade,
        score_before=60,
        score_after=64,
        **values,
    )


def commit(commit_hash: str, **given: Any) -> Commit:
    """Make a commit that nobody has judged."""
    values = {"agent": "otter", "project": "app", "task": TASK, "at": at(1), **given}
    return Commit(commit_hash=commit_hash, experience_gained=5, **values)


def activity(task: str, outcome: str = "", **given: Any) -> Activity:
    """Make an activity."""
    values = {"agent": "otter", "actions": "", "decisions": "", "at": at(2), **given}
    return Activity(task=task, outcome=outcome, **values)


def hashes(hits: tuple[Any, ...]) -> list[str]:
    """Give the commits of some hits, in their order."""
    return [each.commit_hash for each in hits]


def ask(begin: Begin, text: str = TASK, **given: Any) -> Recall:
    """Ask in a transaction that only reads."""
    with begin(write=False) as uow:
        return recall(uow, text, **given)


def fill(begin: Begin, **rows: list[Any]) -> None:
    """Add rows to the named repositories."""
    with begin() as uow:
        for name, each in rows.items():
            getattr(uow, name).add_all(each)
        uow.commit()


def test_a_hit_says_what_it_is_and_why_it_was_found(begin: Begin) -> None:
    """With its score, the terms it shares, its judgement and all that was written about it."""
    row = judged("a", user_note="lost the lease", agent_note="tricky")
    fill(begin, retrospectives=[row, judged("b", task="other things")])
    found = ask(begin, "claiming: lease, claim and more", project="app")
    (hit,) = found.good
    assert (hit.kind, hit.agent, hit.project, hit.commit_hash, hit.at) == (
        "retrospective",
        "otter",
        "app",
        "a",
        at(9),
    )
    assert hit.id.startswith("ret_")
    assert hit.score > 0
    assert hit.why == ("lease", "claim")
    assert (hit.lesson, hit.is_ours) == (Lesson.GOOD, True)
    assert hit.because == "graded good by the user, good by the agent"
    assert hit.text == "claim a lease\nlost the lease\ntricky"
    assert (found.searched, found.mistakes, found.unjudged) == (2, (), ())


def test_good_work_and_mistakes_are_apart(begin: Begin) -> None:
    """By grades and by outcomes; what nobody judged is apart from both."""
    fill(
        begin,
        retrospectives=[judged("good"), judged("bad", Grade.BAD), judged("so", Grade.NEUTRAL)],
        commits=[commit("new")],
        activities=[
            activity(TASK, "all tests passed"),
            activity(TASK, "failed"),
            activity(TASK, "who knows"),
        ],
    )
    found = ask(begin)
    assert sorted((each.kind, each.commit_hash) for each in found.good) == [
        ("activity", None),
        ("retrospective", "good"),
    ]
    assert [each.text for each in found.mistakes if each.kind == "activity"] == [f"{TASK}\nfailed"]
    assert hashes(found.mistakes) in (["bad", None], [None, "bad"])
    assert {each.commit_hash for each in found.unjudged} == {"new", "so", None}
    assert {each.lesson for each in found.unjudged} == {Lesson.OPEN}


def test_a_bug_makes_a_mistake_of_good_work(begin: Begin) -> None:
    """The last commit before the bug is one, whatever it was graded; others' work is not."""
    fill(
        begin,
        commits=[
            commit("a", at=at(1)),
            commit("b", at=at(2)),
            commit("c", at=at(6)),
            commit("d", agent="heron", at=at(3)),
        ],
        retrospectives=[judged("a"), judged("b"), judged("d", agent="heron")],
        ledger=[bug_entry(EntryContext("otter", at(5)))],
    )
    found = ask(begin)
    assert hashes(found.mistakes) == ["b"]
    assert found.mistakes[0].because == "a bug was found in it"
    assert sorted(hashes(found.good)) == ["a", "d"]
    assert hashes(found.unjudged) == ["c"]


def test_a_commit_is_shown_once(begin: Begin) -> None:
    """By its retrospective if that is found too, else by itself with the grades it was given."""
    fill(
        begin,
        commits=[commit("a"), commit("b")],
        retrospectives=[judged("a"), judged("b", Grade.BAD, task="quite another matter")],
    )
    found = ask(begin)
    assert [(each.kind, each.commit_hash) for each in found.good] == [("retrospective", "a")]
    assert [(each.kind, each.commit_hash) for each in found.mistakes] == [("commit", "b")]
    assert found.unjudged == ()


def test_this_project_comes_first(begin: Begin) -> None:
    """Under each of its names, before better matches of other projects."""
    fill(
        begin,
        retrospectives=[
            judged("other", project="lib"),
            judged("ours", task=f"{TASK} and some more words that dilute it"),
            judged(
                "named",
                task=f"{TASK} among even more words that dilute it ever further",
                project="/app",
            ),
        ],
    )
    assert hashes(ask(begin, project="app", also=["/app"]).good) == ["ours", "named", "other"]
    assert hashes(ask(begin).good)[0] == "other"
    assert [each.is_ours for each in ask(begin, project="lib").good] == [True, False, False]


def test_a_third_of_the_places_is_kept_for_others(begin: Begin) -> None:
    """A project with much to show hides nothing that others learned, and fills what they leave."""
    ours = [judged(f"o{at}") for at in range(6)]
    fill(begin, retrospectives=[*ours, judged("x", project="lib"), judged("y", project="lib")])
    found = ask(begin, project="app", limit=3).good
    assert [each.is_ours for each in found] == [True, True, False]
    assert [each.is_ours for each in ask(begin, project="lib", limit=3).good] == [
        True,
        True,
        False,
    ]
    assert [each.is_ours for each in ask(begin, project="app").good] == [True] * 6 + [False] * 2


def test_of_equal_matches_the_latest_comes_first(begin: Begin) -> None:
    """In the same order on every store."""
    rows = [judged(str(minute), at=at(minute)) for minute in (3, 1, 2)]
    fill(begin, retrospectives=rows)
    assert hashes(ask(begin).good) == ["3", "2", "1"]


def test_what_shares_too_little_is_left_out(begin: Begin) -> None:
    """One word of many that all texts have is no resemblance."""
    told = "claim a lease with fences and heartbeats over many worktrees"
    noise = [judged(f"n{at}", task=f"claim item {at}") for at in range(20)]
    fill(begin, retrospectives=[judged("a", task=told), *noise])
    assert hashes(ask(begin, told).good) == ["a"]


def test_an_empty_record_has_no_prior_art(begin: Begin) -> None:
    """The answer is empty, and says that nothing was searched."""
    assert ask(begin) == Recall(0, (), (), ())


@pytest.mark.parametrize(
    ("given", "field"), [({"text": " … "}, "text"), ({"limit": 0}, "limit")], ids=["text", "limit"]
)
def test_what_cannot_be_asked_is_refused(begin: Begin, given: Any, field: str) -> None:
    """A text without a word, and a limit of nothing."""
    with pytest.raises(InvalidValue) as refusal:
        ask(begin, **given)
    assert refusal.value.field == field


def test_a_record_of_several_pages_is_searched_whole(begin: Begin) -> None:
    """Also what lies behind the first thousand rows, and the commits of an agent with bugs."""
    commits = [commit(f"c{n}", task=f"matter {n} lease", at=at(n)) for n in range(1_100)]
    fill(begin, commits=commits, ledger=[bug_entry(EntryContext("otter", at(2_000)))])
    found = ask(begin, "lease", limit=2_000)
    assert found.searched == 1_100
    assert len(found.unjudged) == 1_099
    assert hashes(found.mistakes) == ["c1099"]
