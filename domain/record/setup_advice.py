"""Which setup of agents to use next: what the record says of each, and how certain it is.

Every number comes with its interval, and nothing is called better that chance alone could have put
first.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from enum import StrEnum
from math import comb, sqrt
from statistics import NormalDist

from attrs import frozen

from herdbook.domain.grading import Grade
from herdbook.domain.record.intervals import (
    CONFIDENCE,
    Interval,
    mean_interval,
    rate_interval,
    trend_interval,
)
from herdbook.domain.record.merit import Average, average_of, merit_of
from herdbook.domain.record.observations import Observation, Setup

ENOUGH = 10
"""How many observations a setup needs to be compared with others."""


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


def advise(observations: Iterable[Observation]) -> Advice:
    """Rank the setups for the next project, those without enough data last."""
    seen = sorted(observations, key=lambda each: each.at)
    by_setup: dict[Setup, list[Observation]] = defaultdict(list)
    for each in seen:
        by_setup[each.setup].append(each)
    average = average_of(seen)
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


def _track_record(
    setup: Setup, observations: Sequence[Observation], average: Average
) -> TrackRecord:
    grades = [each.grade for each in observations if each.grade is not None]
    bugs = sum(each.bug for each in observations)
    merit, uncertainty = merit_of(observations, average)
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
    apart = errors_apart(len(compared))
    first = compared[0]
    return [
        each
        for each in compared
        if first.merit - each.merit <= apart * sqrt(first.uncertainty**2 + each.uncertainty**2)
    ]


def errors_apart(compared: int) -> float:
    """How many standard errors two of so many setups must differ by to be called different."""
    # The 5 % error rate is for all pairs together, so each pair gets less (Bonferroni).
    return NormalDist().inv_cdf(1 - (1 - CONFIDENCE) / 2 / comb(compared, 2))


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
            f"not enough data: a comparison needs 2 setups with {ENOUGH} commits each; "
            f"you have {len(compared)}"
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
