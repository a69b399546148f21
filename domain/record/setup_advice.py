"""Which setup of agents to use next: what the record says of each, and how certain it is.

Every number comes with its interval, and nothing is called better that chance alone could have put
first.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from enum import StrEnum
from math import comb, sqrt
from statistics import NormalDist, fmean

from attrs import frozen

from herdbook.domain.grading import Grade
from herdbook.domain.record.intervals import (
    CONFIDENCE,
    SCALE_VARIANCE,
    Interval,
    mean_interval,
    rate_interval,
    sum_of_squares,
    trend_interval,
)
from herdbook.domain.record.observations import Observation, Setup

ENOUGH = 10
"""How many observations a setup needs to be compared with others."""
AVERAGE_COMMITS = 10
"""How many additional commits, as good as the average of all setups, each setup is ranked with."""
BUG_COST = Grade.EXCELLENT - Grade.BAD
"""How many grades a bug subtracts from the merit: the width of the whole scale."""


class Verdict(StrEnum):
    """What can be said of the setup that is ranked first."""

    TOO_LITTLE_DATA = "too_little_data"
    EQUAL = "equal"
    BETTER = "better"


@frozen(kw_only=True)
class TrackRecord:
    """What is known of one setup.

    `merit`, in grades, is what it is ranked by: its mean grade minus the cost of its bugs, both
    computed with some average commits added, so that a lucky few do not come first. `uncertainty`
    is the standard error of that. `praise` and `blame` are the strongest notes for and against it.
    """

    setup: Setup
    observations: int
    commits: int
    bugs: int
    grades: int
    bug_rate: Interval
    mean_grade: Interval | None
    trend: Interval | None
    merit: float
    uncertainty: float
    praise: Observation | None
    blame: Observation | None

    @property
    def enough(self) -> bool:
        """Whether it has enough observations to be compared with others."""
        return self.observations >= ENOUGH


@frozen(kw_only=True)
class Advice:
    """All setups, the most promising first, and how reliable that order is.

    `leaders` are the first and all that cannot be distinguished from it; empty where there is too
    little data.
    """

    verdict: Verdict
    words: str
    leaders: tuple[Setup, ...]
    ranked: tuple[TrackRecord, ...]


@frozen
class _Average:
    bug_rate: float
    grade: float


def advise(observations: Iterable[Observation]) -> Advice:
    """Rank the setups for the next project, those without enough data last."""
    seen = sorted(observations, key=lambda each: each.at)
    by_setup: dict[Setup, list[Observation]] = defaultdict(list)
    for each in seen:
        by_setup[each.setup].append(each)
    average = _average(seen)
    ranked = sorted(
        (_track_record(setup, its, average) for setup, its in by_setup.items()),
        key=lambda each: (not each.enough, -each.merit, -each.observations, str(each.setup)),
    )
    compared = [each for each in ranked if each.enough]
    leaders = _leaders(compared)
    verdict = Verdict.EQUAL if leaders[1:] else Verdict.BETTER
    if not compared[1:]:
        verdict, leaders = Verdict.TOO_LITTLE_DATA, []
    return Advice(
        verdict=verdict,
        words=_summary(verdict, leaders, compared, ranked),
        leaders=tuple(each.setup for each in leaders),
        ranked=tuple(ranked),
    )


def _average(observations: Sequence[Observation]) -> _Average:
    bugs = sum(each.bug for each in observations)
    grades = [each.grade for each in observations if each.grade is not None]
    # Half a bug more: none in a few commits does not mean that there will never be one.
    bug_rate = (bugs + 0.5) / (len(observations) + 1)
    return _Average(bug_rate, fmean(grades) if grades else float(Grade.NEUTRAL))


def _track_record(
    setup: Setup, observations: Sequence[Observation], average: _Average
) -> TrackRecord:
    grades = [each.grade for each in observations if each.grade is not None]
    bugs = sum(each.bug for each in observations)
    merit, uncertainty = _merit(observations, average)
    return TrackRecord(
        setup=setup,
        observations=len(observations),
        commits=sum(each.committed for each in observations),
        bugs=bugs,
        grades=len(grades),
        bug_rate=rate_interval(bugs, len(observations)),
        mean_grade=mean_interval(grades),
        trend=trend_interval(grades),
        merit=merit,
        uncertainty=uncertainty,
        praise=_strongest_note(observations, favourable=True),
        blame=_strongest_note(observations, favourable=False),
    )


def _merit(observations: Sequence[Observation], average: _Average) -> tuple[float, float]:
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
    return mean_grade - BUG_COST * bug_rate, sqrt(variance)


def _strongest_note(observations: Iterable[Observation], *, favourable: bool) -> Observation | None:
    quotes = [
        (abs(each.grade - Grade.NEUTRAL), each.at, each)
        for each in observations
        if each.note and each.grade is not None and (each.grade > Grade.NEUTRAL) is favourable
    ]
    return max(quotes, key=lambda quote: quote[:2])[2] if quotes else None


def _leaders(compared: Sequence[TrackRecord]) -> list[TrackRecord]:
    if not compared[1:]:
        return list(compared)
    # The 5 % error rate is for all pairs together, so each pair gets less (Bonferroni).
    apart = NormalDist().inv_cdf(1 - (1 - CONFIDENCE) / 2 / comb(len(compared), 2))
    first = compared[0]
    return [
        each
        for each in compared
        if first.merit - each.merit <= apart * sqrt(first.uncertainty**2 + each.uncertainty**2)
    ]


def _summary(
    verdict: Verdict,
    leaders: Sequence[TrackRecord],
    compared: Sequence[TrackRecord],
    ranked: Sequence[TrackRecord],
) -> str:
    names = ", ".join(str(each.setup) for each in leaders)
    seen = sum(each.observations for each in compared)
    if verdict is Verdict.TOO_LITTLE_DATA:
        words = (
            f"not enough data: {len(compared)} of {len(ranked)} setups have the {ENOUGH} "
            "observations that a comparison of at least two needs"
        )
    elif verdict is Verdict.BETTER:
        words = f"{names} is better than the other {len(compared) - 1}, by {seen} observations"
    elif len(leaders) == len(compared):
        words = f"all are equal as far as {seen} observations can tell: {names}"
    else:
        words = (
            f"the first {len(leaders)} are equal as far as {seen} observations can tell: {names}"
        )
    thin = len(ranked) - len(compared)
    if thin and compared[1:]:
        words += f"; there is not enough data on {thin} more"
    return words
