"""95% confidence intervals for rates, mean grades and trends."""

from collections.abc import Sequence
from math import sqrt
from statistics import NormalDist, fmean

from attrs import frozen

from herdbook.domain.grading import Grade

CONFIDENCE = 0.95
SCALE_VARIANCE = 4.6875
"""The variance of the four grades if all are equally likely."""

_Z = NormalDist().inv_cdf(0.5 + CONFIDENCE / 2)
_FIRST_T = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
_FEWEST_FOR_TREND = 3


@frozen
class Interval:
    """An estimate, and the 95% confidence interval around it."""

    low: float
    estimate: float
    high: float


def rate_interval(hits: int, trials: int) -> Interval:
    """Wilson's score interval: the rates under which this many hits would be no surprise."""
    if not trials:
        return Interval(0.0, 0.0, 1.0)
    rate = hits / trials
    centre = rate + _Z**2 / (2 * trials)
    reach = _Z * sqrt(rate * (1 - rate) / trials + (_Z / (2 * trials)) ** 2)
    widened = 1 + _Z**2 / trials
    low = (centre - reach) / widened if hits else 0.0
    high = (centre + reach) / widened if hits < trials else 1.0
    return Interval(low, rate, high)


def mean_interval(grades: Sequence[float]) -> Interval | None:
    """A t-interval whose variance includes one more grade, as uncertain as the whole scale.

    So two equal grades do not count as certainty. It is clipped to the scale of grades. None
    without grades.
    """
    if not grades:
        return None
    found = difference_interval(grades)
    return Interval(
        max(float(Grade.BAD), found.low), found.estimate, min(Grade.EXCELLENT, found.high)
    )


def difference_interval(differences: Sequence[float]) -> Interval:
    """The same interval, not clipped: of differences between grades, of which there must be one."""
    count = len(differences)
    mean = fmean(differences)
    variance = (SCALE_VARIANCE + sum_of_squares(differences, mean)) / count
    reach = student_t(count) * sqrt(variance / count)
    return Interval(mean - reach, mean, mean + reach)


def trend_interval(grades: Sequence[float]) -> Interval | None:
    """How much grades rise over ten commits: the least-squares slope and its t-interval.

    The variance includes one more grade, as for the mean. None for fewer than three grades.
    """
    count = len(grades)
    if count < _FEWEST_FOR_TREND:
        return None
    middle, width = (count - 1) / 2, count * (count**2 - 1) / 12
    slope = sum((place - middle) * grade for place, grade in enumerate(grades)) / width
    unexplained = max(0.0, sum_of_squares(grades, fmean(grades)) - slope**2 * width)
    variance = (SCALE_VARIANCE + unexplained) / (count - 1)
    reach = student_t(count - 1) * sqrt(variance / width)
    return Interval(10 * (slope - reach), 10 * slope, 10 * (slope + reach))


def sum_of_squares(numbers: Sequence[float], mean: float) -> float:
    """The sum of the squared distances from the mean."""
    return sum((number - mean) ** 2 for number in numbers)


def student_t(degrees: int) -> float:
    """How many standard errors a 95% t-interval extends to each side."""
    if degrees <= len(_FIRST_T):
        return _FIRST_T[degrees - 1]
    z = _Z
    return (
        z
        + (z**3 + z) / (4 * degrees)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * degrees**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * degrees**3)
    )
