"""The laws of intervals, with cases computed by hand."""

from math import comb
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdbook.domain.grading import Grade
from herdbook.domain.record.intervals import (
    SCALE_VARIANCE,
    mean_interval,
    rate_interval,
    student_t,
    sum_of_squares,
    trend_interval,
)
from tests.cases import for_each

rates = st.integers(1, 1000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
grades = st.lists(st.floats(-1, 5), min_size=1, max_size=30)
long_grades = st.lists(st.floats(-1, 5), min_size=3, max_size=30)


@for_each(
    ("hits", "trials", "low", "high"),
    [
        # For 1 of 20: centre 0.05 + 3.8415/40 = 0.14604, reach 1.96 * sqrt(0.0475/20 + 0.002401)
        # = 0.13545, both divided by 1 + 3.8415/20 = 1.19207.
        (1, 20, 0.00888, 0.23613),
        (10, 100, 0.05523, 0.17437),
        (0, 10, 0.0, 0.27753),  # 3.8415 / 13.8415
        (10, 10, 0.72247, 1.0),
        (0, 0, 0.0, 1.0),
    ],
    ids=str,
)
def test_rates_computed_by_hand(hits: int, trials: int, low: float, high: float) -> None:
    """Wilson's interval is what a person gets with pencil and paper."""
    interval = rate_interval(hits, trials)
    assert (interval.low, interval.high) == pytest.approx((low, high), abs=1e-5)
    assert interval.estimate == (hits / trials if trials else 0)


@given(rates)
def test_a_rate_lies_in_its_interval(rate: tuple[int, int]) -> None:
    """An interval of a rate holds the rate and nothing that is no rate."""
    interval = rate_interval(*rate)
    assert 0 <= interval.low <= interval.estimate <= interval.high <= 1


@given(rates)
def test_hits_and_misses_are_alike(rate: tuple[int, int]) -> None:
    """The interval of the misses is that of the hits, mirrored."""
    hits, trials = rate
    one, other = rate_interval(hits, trials), rate_interval(trials - hits, trials)
    assert (1 - other.high, 1 - other.low) == pytest.approx((one.low, one.high))


@given(rates, st.integers(2, 10))
def test_more_of_the_same_is_surer(rate: tuple[int, int], times: int) -> None:
    """The same rate seen more often has a narrower interval."""
    few = rate_interval(*rate)
    many = rate_interval(*(times * number for number in rate))
    assert many.high - many.low < few.high - few.low


@for_each("rate", [0.05, 0.15, 0.5])
@for_each("trials", [20, 75, 300])
def test_a_rate_interval_holds_the_truth(rate: float, trials: int) -> None:
    """Over all that can happen, the interval of a rate is right about 95 times of 100."""
    right = 0.0
    for hits in range(trials + 1):
        interval = rate_interval(hits, trials)
        if interval.low <= rate <= interval.high:
            right += comb(trials, hits) * rate**hits * (1 - rate) ** (trials - hits)
    assert right > 0.92


@for_each(
    ("degrees", "reach"),
    [
        (1, 12.706),
        (5, 2.571),
        (9, 2.262),
        (10, 2.228),
        (11, 2.201),
        (15, 2.131),
        (20, 2.086),
        (30, 2.042),
        (60, 2.000),
        (120, 1.980),
        (10**6, 1.960),
    ],
    ids=str,
)
def test_student_t_is_that_of_the_tables(degrees: int, reach: float) -> None:
    """The quantiles are those printed in every book."""
    assert student_t(degrees) == pytest.approx(reach, abs=6e-4)


@given(st.integers(1, 1000))
def test_student_t_falls(degrees: int) -> None:
    """More degrees of freedom reach less far."""
    assert student_t(degrees + 1) < student_t(degrees)


def test_the_variance_of_the_scale() -> None:
    """The variance that one more grade counts with is that of the four grades."""
    values = [float(grade) for grade in Grade]
    assert sum_of_squares(values, sum(values) / 4) / 4 == SCALE_VARIANCE


def test_a_mean_computed_by_hand() -> None:
    """Of 9 grades with mean 2 and squares 8: 2.262 * sqrt((4.6875 + 8) / 9 / 9) = 0.89524."""
    interval = mean_interval([1] * 4 + [2] + [3] * 4)
    assert interval is not None
    assert interval.estimate == 2
    assert (interval.low, interval.high) == pytest.approx((1.10476, 2.89524), abs=1e-5)


def test_two_equal_grades_are_no_certainty() -> None:
    """Of 2 grades: 4.303 * sqrt(4.6875 / 2 / 2) = 4.66, which is all of the scale."""
    interval = mean_interval([2, 2])
    assert interval is not None
    assert (interval.low, interval.high) == (-1, 5)


def test_no_grades_have_no_mean() -> None:
    """Nothing is said where nothing is known."""
    assert mean_interval([]) is None


@given(grades)
def test_a_mean_lies_in_its_interval(some: list[float]) -> None:
    """An interval of a mean holds the mean and nothing outside of the scale."""
    interval = mean_interval(some)
    assert interval is not None
    assert -1 <= interval.low <= interval.estimate + 1e-9
    assert interval.estimate - 1e-9 <= interval.high <= 5


@for_each("count", [2, 5, 20, 75])
def test_a_mean_interval_holds_the_truth(count: int) -> None:
    """In simulations the interval of a mean is right at least 94 times of 100."""
    random = Random(count)
    weights = (0.16, 0.26, 0.40, 0.18)
    truth = sum(weight * grade for weight, grade in zip(weights, Grade, strict=True))
    right = 0
    for _ in range(1000):
        interval = mean_interval(
            [float(each) for each in random.choices(list(Grade), weights, k=count)]
        )
        assert interval is not None
        right += interval.low <= truth <= interval.high
    assert right >= 940


def test_a_trend_computed_by_hand() -> None:
    """Grades 1, 2, 3 rise by 10 in ten: 4.303 * sqrt(4.6875 / 2 / 2) * 10 = 46.581 to each side."""
    interval = trend_interval([1, 2, 3])
    assert interval is not None
    assert (interval.low, interval.estimate, interval.high) == pytest.approx(
        (-36.5813, 10, 56.5813), abs=1e-3
    )


def test_two_grades_have_no_trend() -> None:
    """A line through two points says nothing."""
    assert trend_interval([1, 2]) is None


@given(long_grades)
def test_a_trend_turns_with_time(some: list[float]) -> None:
    """Grades read backwards fall as much as they rose."""
    one, other = trend_interval(some), trend_interval(some[::-1])
    assert one is not None
    assert other is not None
    assert (one.low, one.estimate, one.high) == pytest.approx(
        (-other.high, -other.estimate, -other.low), abs=1e-6
    )


@given(long_grades, st.floats(-0.5, 0.5))
def test_a_trend_is_that_of_the_changes(some: list[float], more: float) -> None:
    """Grades that are all higher by the same have the same trend."""
    one, other = trend_interval(some), trend_interval([each + more for each in some])
    assert one is not None
    assert other is not None
    assert one.estimate == pytest.approx(other.estimate, abs=1e-6)
