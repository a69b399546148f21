"""The laws of grades, experience and halts."""

from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from herdbook.domain.errors import InvalidValue
from herdbook.domain.grading import (
    Experience,
    Grade,
    grow,
    grow_by_many,
    is_halted,
    score_after,
)

grades = st.sampled_from(Grade)
skills = st.integers(-3, 5)
amounts = st.integers(0, 60)
steps = st.integers(1, 20)


@given(grades, st.sampled_from([str.lower, str.upper, str.title]), st.sampled_from(["", " "]))
def test_a_grade_is_read_from_its_label(
    grade: Grade, written: Callable[[str], str], space: str
) -> None:
    """A label means its grade however it is capitalised or padded."""
    assert Grade.parse(f"{space}{written(grade.label)}{space}") is grade


def test_the_label_of_the_agent_tracker_means_the_best_grade() -> None:
    """`excellence`, which its records and older commands have, is `excellent`."""
    assert Grade.parse("Excellence") is Grade.EXCELLENT
    assert Grade.EXCELLENT.label == "excellent"


@given(grades)
def test_a_grade_is_read_from_its_number(grade: Grade) -> None:
    """A number means its grade, as a number and as text."""
    assert Grade.parse(grade.value) is Grade.parse(str(grade.value)) is Grade.parse(grade) is grade


@given(
    st.text().filter(
        lambda text: (
            text.strip().lower()
            not in {"bad", "neutral", "good", "excellent", "excellence", "-1", "1", "2", "5"}
        )
    )
    | st.integers().filter(lambda number: number not in {-1, 1, 2, 5})
    | st.booleans()
    | st.sampled_from([1.0, 2.0, None])
)
def test_nothing_else_is_a_grade(text: str | int) -> None:
    """What is neither a label nor a number of a grade is refused."""
    with pytest.raises(InvalidValue, match=r"^grade: .* is not one of bad \(-1\), neutral \(1\)"):
        Grade.parse(text)


@given(st.integers(0, 1000), grades, grades)
def test_two_grades_move_the_score_by_their_sum(score: int, one: Grade, other: Grade) -> None:
    """Both parties' grades change a score by -2 to +10, but never to below zero."""
    after = score_after(score, one, other)
    assert after == max(0, score + one + other)
    assert after >= 0
    assert min(0, 2 - score) - 2 <= after - score <= 10


@given(skills, amounts, amounts, st.integers(0, 200), steps)
@example(skill=1, experience=50, gained=0, times=3, step=10)
@example(skill=1, experience=0, gained=100, times=9, step=1)
@example(skill=0, experience=5, gained=7, times=9, step=1)
def test_growing_by_many_is_growing_one_by_one(
    skill: int, experience: int, gained: int, times: int, step: int
) -> None:
    """Many successes at once lead exactly where the same successes lead one after another."""
    expected = skill, experience
    for _ in range(times):
        expected = grow(*expected, gained, step)
    assert grow_by_many(skill, experience, gained, times, step) == expected


@given(skills, amounts, amounts, st.tuples(st.integers(0, 50), st.integers(0, 50)), steps)
def test_growing_can_be_split_anywhere(
    skill: int, experience: int, gained: int, times: tuple[int, int], step: int
) -> None:
    """It does not matter where a row of equal successes is cut in two."""
    first, second = times
    halfway = grow_by_many(skill, experience, gained, first, step)
    whole = grow_by_many(skill, experience, gained, first + second, step)
    assert grow_by_many(*halfway, gained, second, step) == whole


@given(st.integers(1, 50), steps)
def test_experience_becomes_skill_at_its_mark(skill: int, step: int) -> None:
    """At step times the skill points there is one point more, and experience begins again."""
    mark = step * skill
    assert grow(skill, mark - 1, 0, step) == (skill, mark - 1)
    assert grow(skill, mark - 1, 1, step) == (skill + 1, 0)


@given(st.integers(-5, 0), amounts, amounts, st.integers(0, 100), steps)
def test_a_halted_agent_does_not_rise(
    skill: int, experience: int, gained: int, times: int, step: int
) -> None:
    """Success alone never lifts a halt, but it is counted."""
    grown = grow_by_many(skill, experience, gained, times, step)
    assert grown == (skill, experience + gained * times)
    assert is_halted(grown[0])


@given(skills, amounts, amounts, st.integers(0, 100), steps)
def test_success_takes_no_skill(
    skill: int, experience: int, gained: int, times: int, step: int
) -> None:
    """Nobody loses skill points by succeeding."""
    assert grow_by_many(skill, experience, gained, times, step)[0] >= skill


@given(st.integers())
def test_without_skill_points_an_agent_is_halted(skill: int) -> None:
    """An agent is halted exactly when its skill points are not above zero."""
    assert is_halted(skill) is (skill <= 0)


@given(
    st.sampled_from(["tool", "command", "commit", "grade", "per_skill_point"]),
    st.integers(max_value=-1) | st.sampled_from([0.5, True, "1", None]),
)
def test_settings_that_make_no_sense_are_refused(field: str, value: int) -> None:
    """The worth of a success is a whole number that is not negative, and the error names it."""
    with pytest.raises(InvalidValue, match=f"^{field}: "):
        Experience(**{field: value})


def test_a_skill_point_costs_something() -> None:
    """Skill points for nothing are refused."""
    with pytest.raises(InvalidValue, match="^per_skill_point: "):
        Experience(per_skill_point=0)
