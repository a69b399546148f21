"""What a list of setups shows besides their ranks: the mix of grades, weeks, what it tells."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from statistics import NormalDist, fmean
from typing import NamedTuple

from herdbook.domain.grading import Grade
from herdbook.domain.record.intervals import CONFIDENCE, Interval
from herdbook.domain.record.observations import Observation, Setup
from herdbook.domain.record.setup_advice import ENOUGH, Advice, TrackRecord

_Z = NormalDist().inv_cdf(0.5 + CONFIDENCE / 2)
_WEEK = timedelta(weeks=1)


class WeekOfWork(NamedTuple):
    """The work of a setup in the week that begins on a Monday, in UTC.

    `mean_grade` is None where no commit of that week was graded by both parties.
    """

    begin: date
    observations: int
    grades: int
    bugs: int
    mean_grade: float | None


class ProjectCount(NamedTuple):
    """A project of the record, the language of its texts, and how much was observed there."""

    name: str
    language: str | None
    observations: int


class LanguageCount(NamedTuple):
    """A language, how many projects are in it, and how much was observed there."""

    name: str
    projects: int
    observations: int


def group_by_setup(observations: Iterable[Observation]) -> dict[Setup, list[Observation]]:
    """The observations of each setup."""
    found: dict[Setup, list[Observation]] = defaultdict(list)
    for each in observations:
        found[each.setup].append(each)
    return found


def count_grades(observations: Iterable[Observation]) -> dict[Grade, int]:
    """How often the person gave each grade, the worst first."""
    given = Counter(each.user_grade for each in observations if each.user_grade is not None)
    return {grade: given[grade] for grade in Grade}


def weeks_of_work(
    observations: Sequence[Observation], until: datetime, count: int
) -> tuple[WeekOfWork, ...]:
    """The last weeks up to that of a moment, the earliest first, also those without work."""
    by_week: dict[date, list[Observation]] = defaultdict(list)
    for each in observations:
        by_week[monday_of(each.at)].append(each)
    last = monday_of(until)
    return tuple(_week(last - _WEEK * back, by_week) for back in reversed(range(count)))


def monday_of(moment: datetime) -> date:
    """The Monday of the week of a moment, in UTC."""
    day = moment.astimezone(UTC).date()
    return day - timedelta(days=day.weekday())


def merit_interval(record: TrackRecord) -> Interval:
    """The merit of a setup with its 95% confidence interval."""
    reach = _Z * record.uncertainty
    return Interval(record.merit - reach, record.merit, record.merit + reach)


def describe_place(record: TrackRecord, advice: Advice) -> str:
    """What the place of a setup tells, in a few words; also that it tells nothing."""
    if not record.enough:
        return f"too little to tell: {record.observations} of {ENOUGH} commits"
    if not advice.leaders:
        return "nothing to compare it with yet"
    if record.setup not in advice.leaders:
        return "behind the first"
    return "better than the others" if len(advice.leaders) == 1 else "equal to the other first"


def describe_trend(record: TrackRecord) -> str:
    """Whether the grades of a setup rise or fall, as far as that is certain."""
    trend = record.trend
    if trend is None:
        return "too few grades for a trend"
    if trend.low <= 0 <= trend.high:
        return "no certain trend"
    way = "rises" if trend.estimate > 0 else "falls"
    return f"{way} by {abs(trend.estimate):.1f} in ten commits"


def count_projects(
    observations: Iterable[Observation], languages: dict[str, str]
) -> tuple[ProjectCount, ...]:
    """The projects of the record, those with most work first."""
    seen = Counter(each.project for each in observations if each.project is not None)
    found = [ProjectCount(name, languages.get(name), number) for name, number in seen.items()]
    return tuple(sorted(found, key=lambda each: (-each.observations, each.name)))


def count_languages(projects: Iterable[ProjectCount]) -> tuple[LanguageCount, ...]:
    """The languages of these projects, those with most work first."""
    by_language: dict[str, list[ProjectCount]] = defaultdict(list)
    for each in projects:
        if each.language is not None:
            by_language[each.language].append(each)
    found = [
        LanguageCount(name, len(its), sum(each.observations for each in its))
        for name, its in by_language.items()
    ]
    return tuple(sorted(found, key=lambda each: (-each.observations, each.name)))


def _week(begin: date, by_week: dict[date, list[Observation]]) -> WeekOfWork:
    its = by_week.get(begin, [])
    grades = [each.grade for each in its if each.grade is not None]
    mean = fmean(grades) if grades else None
    return WeekOfWork(begin, len(its), len(grades), sum(each.bug for each in its), mean)
