"""What a standing and the grades behind it mean, in numbers and in words."""

from herdbook.domain.entity import evolve
from herdbook.domain.grading import Experience
from herdbook.domain.record.intervals import mean_interval
from herdbook.domain.record.standing import first_standing
from herdbook.domain.record.standing_reasons import (
    compare_graders,
    describe_score,
    explain_standing,
)


def test_a_standing_says_what_is_missing_to_the_next_skill_point() -> None:
    """The step grows with the skill points; a halted agent does not rise."""
    rules = Experience(per_skill_point=100)
    standing = evolve(first_standing("otter"), skill_points=2, experience_points=30)
    found = explain_standing(standing, [], rules)
    assert (found.experience_missing, found.bugs_until_halt) == (170, 2)
    halted = evolve(standing, skill_points=-1, active=False)
    assert explain_standing(halted, [], rules)[:2] == (None, 0)


def test_a_score_is_described_with_how_much_it_tells() -> None:
    """Without a graded commit it tells little; with some, their mean and its interval."""
    assert describe_score(62, 0, None) == (
        "communication score 62, +2 since the start; no commit was graded by both yet, so it "
        "tells little"
    )
    words = describe_score(58, 4, mean_interval([1.0, 1.0, 2.0, 2.0]))
    assert words.startswith(
        "communication score 58, -2 since the start; mean grade 1.5 of 4 graded"
    )
    assert words.endswith("with 95% confidence -0.2 to 3.2")


def test_graders_that_differ_are_told_apart_and_others_are_not() -> None:
    """A difference is named with its direction and its interval, once it is certain."""
    assert compare_graders([(5, 1)]).endswith("; too few to tell whether you differ")
    higher = compare_graders([(5, 1)] * 20)
    assert higher.startswith("5.0 by itself, 1.0 by you, on average of 20: it grades itself 4.0 ")
    assert "higher than you do (with 95% confidence +3.8 to +4.2)" in higher
    assert "1.0 lower than you do" in compare_graders([(1, 2)] * 50)
    assert "no difference is certain yet" in compare_graders([(1, 2), (2, 1), (2, 2)])
