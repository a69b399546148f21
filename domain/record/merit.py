"""The merit of a setup: the number, in grades, that setups are ranked by, and how sure it is."""

from collections.abc import Sequence
from math import sqrt
from statistics import fmean
from typing import NamedTuple

from herdbook.domain.grading import Grade
from herdbook.domain.record.intervals import SCALE_VARIANCE, sum_of_squares
from herdbook.domain.record.observations import Observation

AVERAGE_COMMITS = 10
"""How many additional commits, as good as the average of all setups, each setup is ranked with."""
BUG_COST = Grade.EXCELLENT - Grade.BAD
"""How many grades a bug subtracts from the merit: the width of the whole scale."""


class Average(NamedTuple):
    """What all setups together are like."""

    bug_rate: float
    grade: float


class Merit(NamedTuple):
    """A merit and its standard error."""

    value: float
    uncertainty: float


def average_of(observations: Sequence[Observation]) -> Average:
    """The average of all observations."""
    bugs = sum(each.bug for each in observations)
    grades = [each.grade for each in observations if each.grade is not None]
    # Half a bug more: none in a few commits does not mean that there will never be one.
    bug_rate = (bugs + 0.5) / (len(observations) + 1)
    return Average(bug_rate, fmean(grades) if grades else float(Grade.NEUTRAL))


def merit_of(observations: Sequence[Observation], average: Average) -> Merit:
    """The merit of a setup, shrunk towards the average, and its standard error."""
    graded = [(each.grade, each.bug) for each in observations if each.grade is not None]
    grades = [grade for grade, _ in graded]
    done, judged = len(observations) + AVERAGE_COMMITS, len(grades) + AVERAGE_COMMITS
    bugs = sum(each.bug for each in observations)
    bug_rate = (bugs + AVERAGE_COMMITS * average.bug_rate) / done
    mean_grade = (sum(grades) + AVERAGE_COMMITS * average.grade) / judged
    mean = fmean(grades) if grades else average.grade
    spread = (SCALE_VARIANCE + sum_of_squares(grades, mean)) / max(1, len(grades))
    # Where commits with a bug get worse grades too, chance moves both in the same direction.
    shared = sum((mean - grade) * (bug - bug_rate) for grade, bug in graded) / max(1, len(grades))
    variance = (
        spread / judged
        + BUG_COST**2 * bug_rate * (1 - bug_rate) / done
        + 2 * BUG_COST * max(0.0, shared) / done
    )
    return Merit(mean_grade - BUG_COST * bug_rate, sqrt(variance))
