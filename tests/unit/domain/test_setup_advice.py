"""The laws of advice on setups, with cases computed by hand and bars held in simulations."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from herdbook.domain.agents.model import AgentMode
from herdbook.domain.grading import Grade
from herdbook.domain.record.intervals import mean_interval, rate_interval, trend_interval
from herdbook.domain.record.merit import BUG_COST
from herdbook.domain.record.model import Commit, Retrospective, ScoreEvent
from herdbook.domain.record.observations import Observation, Setup, observe
from herdbook.domain.record.setup_advice import ENOUGH, Advice, Verdict, advise
from herdbook.domain.record.standing import EntryContext, bug_entry, commit_entry, tool_entry
from tests.cases import for_each

START = datetime(2026, 1, 1, tzinfo=UTC)
SETUPS = tuple(Setup("claude", model, AgentMode.EXECUTE) for model in "abcd")
GRADES = [float(grade) for grade in Grade]
# How often each grade is given, from bad to excellence: a mean of 1.8 and one of 2.5.
USUAL = (0.16, 0.26, 0.40, 0.18)
BETTER = (0.07, 0.19, 0.44, 0.30)
HISTORIES = 200

some_observations = st.lists(
    st.builds(
        Observation,
        setup=st.sampled_from(SETUPS),
        at=st.integers(0, 50).map(lambda minutes: START + timedelta(minutes=minutes)),
        bug=st.booleans(),
        grade=st.none() | st.sampled_from([-1.0, 0.0, 0.5, 1.0, 1.5, 2.0, 3.5, 5.0]),
        committed=st.booleans(),
        note=st.sampled_from(["", "quick", "slow"]),
    ),
    max_size=60,
)


def at(minute: int) -> datetime:
    """Give a moment."""
    return START + timedelta(minutes=minute)


def history(
    random: Random,
    bug_rates: Sequence[float],
    weights: Sequence[Sequence[float]],
    *,
    commits: int = 300,
    bugs_are_graded: bool = False,
) -> list[Observation]:
    """Simulate what four setups do, each commit by one of them at random."""
    seen = []
    for minute in range(commits):
        which = random.randrange(4)
        bug = random.random() < bug_rates[which]
        (grade,) = random.choices(GRADES, weights[which])
        if bug and bugs_are_graded:
            grade = float(Grade.BAD)
        seen.append(Observation(setup=SETUPS[which], at=at(minute), bug=bug, grade=grade))
    return seen


def work(setup: Setup, count: int, bugs: int = 0, grade: float | None = 2.0) -> list[Observation]:
    """Make as many commits of a setup, the first of them with bugs."""
    return [
        Observation(setup=setup, at=at(minute), bug=minute < bugs, grade=grade)
        for minute in range(count)
    ]


def place(advice: Advice, setup: Setup) -> int:
    """Tell where a setup is ranked."""
    return [each.setup for each in advice.ranked].index(setup)


def test_a_better_setup_is_ranked_first() -> None:
    """One of four with 5 % bugs and grade 2.5 against 15 % and 1.8 comes first, 95 in 100 times."""
    firsts = 0
    for seed in range(HISTORIES):
        best = seed % 4
        bug_rates = [0.05 if each == best else 0.15 for each in range(4)]
        weights = [BETTER if each == best else USUAL for each in range(4)]
        seen = history(Random(seed), bug_rates, weights)
        firsts += advise(seen).ranked[0].setup == SETUPS[best]
    assert firsts >= 0.95 * HISTORIES


@pytest.mark.parametrize("bugs_are_graded", [False, True], ids=["apart", "together"])
def test_equal_setups_are_called_equal(bugs_are_graded: bool) -> None:
    """Four equal setups are all called equal, 90 in 100 times, also where bugs cost grades too."""
    equals = 0
    for seed in range(HISTORIES):
        random = Random(seed)
        seen = history(random, [0.15] * 4, [USUAL] * 4, bugs_are_graded=bugs_are_graded)
        advice = advise(seen)
        equals += advice.verdict is Verdict.EQUAL and len(advice.leaders) == 4
    assert equals >= 0.9 * HISTORIES


def test_a_much_better_setup_is_called_better() -> None:
    """With enough commits the better setup is not only first but said to be better."""
    random = Random(1)
    seen = history(random, [0.05] + [0.15] * 3, [BETTER] + [USUAL] * 3, commits=2_000)
    advice = advise(seen)
    assert advice.verdict is Verdict.BETTER
    assert advice.leaders == (SETUPS[0],)
    assert advice.words == "claude a execute is better than the other 3, by 2000 observations"


def test_a_merit_computed_by_hand() -> None:
    """Ten commits of grade 2, one with a bug: shrunk bug rate 0.118182, merit 2 - 6 * that.

    The average bug rate is (1 + 0.5) / 11 = 0.136364, the shrunk one (1 + 10 * that) / 20. The
    standard error is sqrt(4.6875 / 10 / 20 + 36 * 0.118182 * 0.881818 / 20).
    """
    (record,) = advise(work(SETUPS[0], 10, bugs=1)).ranked
    assert BUG_COST == 6
    assert record.merit == pytest.approx(1.290909, abs=1e-6)
    assert record.uncertainty == pytest.approx(0.459374, abs=1e-6)


def test_grades_that_fall_with_bugs_add_to_the_uncertainty() -> None:
    """Ten commits, the one with a bug graded -1: 1.7 mean, squares 8.1, and 0.27 shared.

    The standard error is sqrt((4.6875 + 8.1) / 10 / 20 + 36 * 0.118182 * 0.881818 / 20
    + 12 * 0.27 / 20).
    """
    first, *rest = work(SETUPS[0], 10, bugs=1)
    (record,) = advise([evolve(first, grade=-1.0), *rest]).ranked
    assert record.merit == pytest.approx(1.7 - 6 * 0.118182, abs=1e-5)
    assert record.uncertainty == pytest.approx(0.643058, abs=1e-6)


@given(some_observations)
def test_a_record_counts_what_was_observed(seen: list[Observation]) -> None:
    """Each setup that was seen is ranked once, with its numbers and their intervals."""
    advice = advise(seen)
    assert {each.setup for each in advice.ranked} == {each.setup for each in seen}
    for record in advice.ranked:
        its = sorted((o for o in seen if o.setup == record.setup), key=lambda o: o.at)
        grades = [each.grade for each in its if each.grade is not None]
        assert record.observations == len(its)
        assert record.commits == sum(each.committed for each in its)
        assert record.bugs == sum(each.bug for each in its)
        assert record.grades == len(grades)
        assert record.bug_rate == rate_interval(record.bugs, len(its))
        assert record.mean_grade == mean_interval(grades)
        assert record.trend == trend_interval(grades)


@given(some_observations.flatmap(lambda each: st.tuples(st.just(each), st.permutations(each))))
def test_the_order_of_reading_does_not_matter(
    orders: tuple[list[Observation], list[Observation]],
) -> None:
    """The same observations lead to the same verdict and the same order."""
    one, other = map(advise, orders)
    assert one.verdict is other.verdict
    assert set(one.leaders) == set(other.leaders)
    merits = {each.setup: each.merit for each in one.ranked}
    assert merits == pytest.approx({each.setup: each.merit for each in other.ranked})


@given(some_observations)
def test_thin_records_come_last(seen: list[Observation]) -> None:
    """A setup without enough data is listed, but after all that can be compared."""
    ranked = advise(seen).ranked
    assert list(ranked) == sorted(ranked, key=lambda each: (not each.enough, -each.merit))
    assert all(each.enough is (each.observations >= ENOUGH) for each in ranked)


@given(some_observations)
def test_the_verdict_says_who_leads(seen: list[Observation]) -> None:
    """One leader is better, several are equal, and with less than two to compare there is none."""
    advice = advise(seen)
    compared = [each.setup for each in advice.ranked if each.enough]
    expected = {0: Verdict.TOO_LITTLE_DATA, 1: Verdict.BETTER}
    assert advice.verdict is expected.get(len(advice.leaders), Verdict.EQUAL)
    assert (advice.verdict is Verdict.TOO_LITTLE_DATA) is (len(compared) < 2)
    assert list(advice.leaders[:1]) == (compared[:1] if compared[1:] else [])
    assert set(advice.leaders) <= set(compared)


@given(some_observations.filter(lambda seen: any(each.bug for each in seen)), st.data())
def test_a_bug_less_never_moves_a_setup_down(seen: list[Observation], data: st.DataObject) -> None:
    """A setup is ranked at least as well with one of its bugs taken away."""
    which = data.draw(st.sampled_from([n for n, each in enumerate(seen) if each.bug]))
    setup = seen[which].setup
    better = [evolve(each, bug=each.bug and n != which) for n, each in enumerate(seen)]
    assert place(advise(better), setup) <= place(advise(seen), setup)


@given(some_observations.filter(lambda seen: any(each.grade for each in seen)), st.data())
def test_a_higher_grade_never_moves_a_setup_down(
    seen: list[Observation], data: st.DataObject
) -> None:
    """A setup is ranked at least as well with one of its grades raised."""
    which = data.draw(st.sampled_from([n for n, each in enumerate(seen) if each.grade]))
    setup = seen[which].setup
    better = [evolve(each, grade=5.0) if n == which else each for n, each in enumerate(seen)]
    assert place(advise(better), setup) <= place(advise(seen), setup)


def test_a_lucky_few_do_not_come_first() -> None:
    """Ten excellent commits do not outrank two hundred that are nearly so."""
    lucky, steady = work(SETUPS[0], 10, grade=3.6), work(SETUPS[1], 200, grade=3.5)
    usual = work(SETUPS[2], 200, bugs=40, grade=1.5)
    assert advise(lucky + steady + usual).ranked[0].setup == SETUPS[1]


@for_each(
    ("seen", "words"),
    [
        (
            [],
            "not enough data: a comparison needs 2 setups with 10 commits each; you have 0",
        ),
        (
            work(SETUPS[0], 50) + work(SETUPS[1], 9),
            "not enough data: a comparison needs 2 setups with 10 commits each; you have 1",
        ),
        (
            work(SETUPS[0], 20) + work(SETUPS[1], 20, bugs=1) + work(SETUPS[2], 1),
            (
                "all are equal as far as 40 observations can tell: claude a execute, "
                "claude b execute; there is not enough data on 1 more"
            ),
        ),
        (
            work(SETUPS[0], 90) + work(SETUPS[1], 90, bugs=1) + work(SETUPS[2], 90, bugs=60),
            (
                "the first 2 are equal as far as 270 observations can tell: claude a execute, "
                "claude b execute"
            ),
        ),
    ],
    ids=["nothing", "one", "equal", "first two"],
)
def test_the_verdict_comes_in_plain_words(seen: list[Observation], words: str) -> None:
    """A person reads what is known and what is not."""
    assert advise(seen).words == words


def test_the_strongest_words_are_quoted() -> None:
    """Of all notes the one with the best and the one with the worst grade are evidence."""
    notes = [(2.0, "fine"), (5.0, "great"), (5.0, ""), (1.0, "meh"), (-1.0, "broke"), (0.0, "hm")]
    seen = [
        Observation(setup=SETUPS[0], at=at(minute), grade=grade, note=note)
        for minute, (grade, note) in enumerate(notes)
    ]
    (record,) = advise(seen).ranked
    assert record.praise == seen[1]
    assert record.blame == seen[4]


def test_without_notes_nothing_is_quoted() -> None:
    """There is no evidence in words where there are no words."""
    (record,) = advise(work(SETUPS[0], 3)).ranked
    assert (record.praise, record.blame) == (None, None)


def on(minute: int, **setup: str) -> EntryContext:
    """Make an occasion of the agent, with the setup it had."""
    return EntryContext(
        agent="brave-otter",
        at=at(minute),
        id=f"evt_{minute}",
        provider=setup.get("provider", "claude"),
        model=setup.get("model"),
        project=setup.get("project"),
    )


def a_commit(minute: int, project: str = "herd") -> Commit:
    """Make a commit of the agent, named by its minute."""
    return Commit(
        agent="brave-otter",
        project=project,
        commit_hash=f"c{minute}",
        task="t",
        experience_gained=5,
        at=at(minute),
    )


def a_retrospective(minute: int, agent_grade: Grade, user_grade: Grade) -> Retrospective:
    """Make a retrospective of the commit of that minute, written later."""
    return Retrospective(
        agent="brave-otter",
        project="herd",
        commit_hash=f"c{minute}",
        task="t",
        agent_grade=agent_grade,
        user_grade=user_grade,
        score_before=60,
        score_after=60,
        agent_note="mine",
        at=at(minute + 100),
    )


def test_a_commit_counts_for_the_setup_of_its_time() -> None:
    """What the ledger knew of the agent when it committed is the setup, model and all."""
    ledger = [
        tool_entry(on(0, model="a")),
        commit_entry(on(1)),
        tool_entry(on(2, model="b")),
        tool_entry(on(4, provider="codex")),
    ]
    seen = observe([a_commit(1), a_commit(3), a_commit(5)], [], ledger)
    assert [each.setup for each in seen] == [
        Setup("claude", "a"),
        Setup("claude", "b"),
        Setup("codex"),
    ]


def test_a_commit_has_the_mean_of_both_grades() -> None:
    """Both parties' judgement makes the grade, wherever the commit itself was written down."""
    judged = [
        a_retrospective(1, Grade.GOOD, Grade.EXCELLENCE),
        a_retrospective(2, *[Grade.BAD] * 2),
    ]
    seen = observe([a_commit(1)], judged, [tool_entry(on(0))])
    assert [(each.at, each.grade, each.note) for each in seen] == [
        (at(1), 3.5, "mine"),
        (at(102), -1.0, "mine"),
    ]


def test_a_bug_counts_against_the_last_commit_before_it() -> None:
    """Bugs are laid to the newest commits without one, in their project if they name it."""
    commits = [a_commit(1), a_commit(2, "book"), a_commit(3), a_commit(9)]
    ledger: list[ScoreEvent] = [tool_entry(on(0)), bug_entry(on(5, project="book"))]
    assert [each.bug for each in observe(commits, [], ledger)] == [False, True, False, False]
    assert [each.bug for each in observe(commits, [], [*ledger, bug_entry(on(6), 2)])] == [
        True,
        True,
        True,
        False,
    ]


def test_a_bug_without_a_commit_stands_for_itself() -> None:
    """No bug is lost because nobody wrote down what it was in."""
    (seen,) = observe([], [], [bug_entry(on(5, model="a"))])
    assert seen == Observation(setup=Setup("claude", "a"), at=at(5), bug=True, committed=False)


def test_nothing_is_said_of_an_unknown_setup() -> None:
    """A commit of an agent that the ledger does not know is left out."""
    assert observe([a_commit(1)], [a_retrospective(2, Grade.GOOD, Grade.GOOD)], []) == []


@given(
    st.lists(st.integers(0, 30), unique=True),
    st.lists(st.tuples(st.integers(0, 30), st.integers(1, 3)), unique_by=lambda bug: bug[0]),
)
def test_observing_counts_every_commit_once(
    commits: list[int], bugs: list[tuple[int, int]]
) -> None:
    """There are as many committed observations as commits, and never more bugs than were found."""
    ledger = [tool_entry(on(99)), *(bug_entry(on(minute), count) for minute, count in bugs)]
    seen = observe([a_commit(minute) for minute in commits], [], ledger)
    assert sum(each.committed for each in seen) == len(commits)
    assert sum(each.bug for each in seen) <= sum(count for _, count in bugs)
    assert sum(each.bug for each in seen) >= len(bugs)
    assert [each.at for each in seen] == sorted(each.at for each in seen)
