"""Why setups are ranked as they are, how certain that is, and what would change it."""

from datetime import UTC, datetime, timedelta
from itertools import cycle, islice

from attrs import evolve

from herdbook.domain.record.advice_reasons import MOST_COMMITS, AdviceEffect, AdviceReasons, explain
from herdbook.domain.record.observations import Observation, Setup
from herdbook.domain.record.setup_advice import ENOUGH, Verdict, advise

START = datetime(2026, 1, 1, tzinfo=UTC)
A, B, C = (Setup("claude", model) for model in "abc")


def work(setup: Setup, *grades: float, count: int = 20, bugs: int = 0) -> list[Observation]:
    """So many commits of a setup with these grades in turn, the first of them with bugs."""
    return [
        Observation(setup=setup, at=START + timedelta(minutes=n), bug=n < bugs, grade=grade)
        for n, grade in enumerate(islice(cycle(grades), count))
    ]


def more(setup: Setup, count: int, like: list[Observation]) -> list[Observation]:
    """So many more commits of a setup, like the earlier ones in turn."""
    return [evolve(each, setup=setup) for each in islice(cycle(like), count)]


def reasons(seen: list[Observation]) -> AdviceReasons:
    """The reasons for the advice from these observations."""
    return explain(advise(seen), seen)


def needed(found: AdviceReasons) -> list[tuple[Setup | None, int]]:
    """The setups and the number of commits that would change the advice."""
    return [(each.setup, each.commits) for each in found.needed]


def test_a_lead_is_explained_by_grades_bugs_and_numbers() -> None:
    """Both sides of each, how many commits tell it, and the interval of the difference."""
    seen = work(A, 2.0) + work(B, 1.0, bugs=4)
    found = reasons(seen)
    assert found.why == (
        "claude a is ranked before claude b: mean grade 2.0 against 1.0 (20 and 20 graded "
        "commits), bugs in 0% against 20% (20 and 20 commits)"
    )
    first, second = advise(seen).ranked
    assert found.lead is not None
    assert found.lead.estimate == first.merit - second.merit
    assert 0 < found.lead.low < found.lead.estimate < found.lead.high
    assert found.certainty.endswith("chance alone does not explain that")


def test_without_grades_only_bugs_are_compared() -> None:
    """Nothing is said of grades that nobody gave."""
    nothing = [evolve(each, grade=None) for each in work(A, 1.0) + work(B, 1.0, bugs=19)]
    assert "grade" not in reasons(nothing).why


def test_a_lead_ends_with_the_commits_that_are_said_to_end_it() -> None:
    """So many excellent commits of the next one make them equal, and one fewer does not."""
    seen = work(A, 2.0) + work(B, 1.0, bugs=4)
    found = reasons(seen)
    assert found.effect is AdviceEffect.CATCH_UP
    ((setup, count),) = needed(found)
    assert setup == B
    assert f"{count} more commits of claude b, excellent and without a bug" in found.change
    best = Observation(setup=B, at=START, grade=5.0)
    # The average of all setups moves with them, so the number is right to within one commit.
    verdicts = [advise(seen + [best] * each).verdict for each in (count - 2, count + 1)]
    assert verdicts == [Verdict.BETTER, Verdict.EQUAL]


def test_equal_setups_say_how_many_commits_would_tell_them_apart() -> None:
    """Like those before; with them, the verdict is that the first is better."""
    first, second = work(A, 2.0), work(B, 2.0, bugs=1)
    found = reasons(first + second)
    assert (found.effect, [setup for setup, _ in needed(found)]) == (AdviceEffect.SEPARATE, [A, B])
    count = found.needed[0].commits
    assert found.change == (
        f"about {count} more commits of each of the two, like those before, would show which is "
        "better"
    )
    assert found.certainty.endswith("chance alone can explain that")

    def after(extra: int) -> Verdict:
        seen = first + second + more(A, extra, first) + more(B, extra, second)
        return advise(seen).verdict

    assert after(0) is Verdict.EQUAL
    assert after(2 * count) is Verdict.BETTER


def test_the_setup_with_fewer_commits_is_asked_for_alone_where_that_is_enough() -> None:
    """Sure of the first, one only has to learn more about the second."""
    found = reasons(work(A, 2.0, count=400) + work(B, 1.6, count=10))
    assert found.effect is AdviceEffect.SEPARATE
    ((setup, count),) = needed(found)
    assert setup == B
    assert 0 < count < MOST_COMMITS
    assert f"about {count} more commit" in found.change


def test_a_difference_of_nothing_is_never_shown() -> None:
    """No number of commits is promised where none would do."""
    found = reasons(work(A, 2.0) + work(B, 2.0))
    assert (found.needed, found.change) == (
        (),
        f"{MOST_COMMITS} more commits of each would not show which is better",
    )


def test_a_lead_that_nobody_reaches_is_called_so() -> None:
    """Not even excellent commits end it."""
    found = reasons(work(A, 5.0, count=3_000) + work(B, -1.0, count=6_000, bugs=6_000))
    assert found.needed == ()
    assert found.change.startswith(f"not even {MOST_COMMITS} excellent commits of claude b")


def test_too_little_data_names_what_is_missing() -> None:
    """Of the setups that are nearest to enough, or of another one."""
    cases = {
        (3, 7, 1): [(B, 3), (A, 7)],
        (12, 7, 1): [(B, 3)],
        (4,): [(A, 6), (None, ENOUGH)],
        (50,): [(None, ENOUGH)],
        (): [],
    }
    for counts, expected in cases.items():
        each = zip((A, B, C), counts, strict=False)
        found = reasons([one for setup, count in each for one in work(setup, 2.0, count=count)])
        assert needed(found) == expected
        assert found.effect is AdviceEffect.COMPARE
        assert (found.lead, found.rival) == (None, None)
        assert found.change.endswith("would make a comparison possible")
    assert "10 commits each of two setups" in reasons([]).change


def test_the_rival_of_equals_is_one_of_them() -> None:
    """Also where a setup between them is clearly worse than the first."""
    seen = work(A, 3.0, count=400) + work(B, 2.4, count=4_000) + work(C, 5.0, -1.0, count=10)
    advice = advise(seen)
    assert advice.verdict is Verdict.EQUAL
    assert explain(advice, seen).rival == advice.leaders[1]
