"""What a list of setups shows besides their ranks."""

from datetime import UTC, date, datetime, timedelta, timezone

from attrs import evolve

from herdbook.domain.grading import Grade
from herdbook.domain.record.leaderboard import (
    count_grades,
    count_languages,
    count_projects,
    describe_place,
    describe_trend,
    merit_interval,
    monday_of,
    weeks_of_work,
)
from herdbook.domain.record.observations import Observation, Setup
from herdbook.domain.record.setup_advice import ENOUGH, advise

SUNDAY = datetime(2026, 3, 8, 23, 59, tzinfo=UTC)
FINE, POOR, RARE = (Setup("claude", model) for model in ("fine", "poor", "rare"))


def seen(setup: Setup, count: int, grade: Grade | None = None) -> list[Observation]:
    """So many commits of a setup, a minute apart and back from a Sunday."""
    return [
        Observation(
            setup=setup,
            at=SUNDAY - timedelta(minutes=number),
            grade=None if grade is None else float(grade),
            user_grade=grade,
        )
        for number in range(count)
    ]


def test_a_week_begins_on_monday_in_utc() -> None:
    """Whatever the zone of the moment is."""
    assert monday_of(SUNDAY) == date(2026, 3, 2)
    assert monday_of(SUNDAY + timedelta(minutes=1)) == date(2026, 3, 9)
    east = timezone(timedelta(hours=2))
    assert monday_of(datetime(2026, 3, 9, 1, tzinfo=east)) == date(2026, 3, 2)


def test_weeks_without_work_are_there_and_older_ones_are_not() -> None:
    """The mean is of what was graded, the counts of everything."""
    new = seen(FINE, 2, Grade.GOOD) + seen(FINE, 1)
    old = [evolve(each, at=each.at - timedelta(weeks=2), bug=True) for each in seen(FINE, 1)]
    ancient = [evolve(each, at=each.at - timedelta(weeks=9)) for each in seen(FINE, 5)]
    weeks = weeks_of_work([*new, *old, *ancient], SUNDAY, 3)
    assert [each.begin for each in weeks] == [
        date(2026, 2, 16),
        date(2026, 2, 23),
        date(2026, 3, 2),
    ]
    assert [(each.observations, each.grades, each.bugs) for each in weeks] == [
        (1, 0, 1),
        (0, 0, 0),
        (3, 2, 0),
    ]
    assert [each.mean_grade for each in weeks] == [None, None, 2.0]


def test_the_mix_of_grades_is_the_persons() -> None:
    """Every grade has its number, from the worst to the best, and ungraded work none."""
    mix = count_grades([*seen(FINE, 2, Grade.GOOD), *seen(FINE, 1, Grade.BAD), *seen(FINE, 4)])
    assert list(mix.items()) == [
        (Grade.BAD, 1),
        (Grade.NEUTRAL, 0),
        (Grade.GOOD, 2),
        (Grade.EXCELLENT, 0),
    ]


def test_a_place_says_what_it_tells_and_what_it_does_not() -> None:
    """Better, behind, equal, alone, and too little."""
    few = seen(RARE, ENOUGH - 1, Grade.EXCELLENT)
    advice = advise([*seen(FINE, 60, Grade.EXCELLENT), *seen(POOR, 60, Grade.BAD), *few])
    assert [describe_place(each, advice) for each in advice.ranked] == [
        "better than the others",
        "behind the first",
        f"too little to tell: {ENOUGH - 1} of {ENOUGH} commits",
    ]
    alike = advise([*seen(FINE, 20, Grade.GOOD), *seen(POOR, 20, Grade.GOOD)])
    assert {describe_place(each, alike) for each in alike.ranked} == {"equal to the other first"}
    alone = advise(seen(FINE, 20, Grade.GOOD))
    assert describe_place(alone.ranked[0], alone) == "nothing to compare it with yet"


def test_more_work_makes_the_interval_of_the_merit_narrower() -> None:
    """The merit itself is in its middle."""
    widths = []
    for count in (5, 50, 500):
        (record,) = advise(seen(FINE, count, Grade.GOOD)).ranked
        found = merit_interval(record)
        assert found.low < record.merit == found.estimate < found.high
        widths.append(found.high - found.low)
    assert widths == sorted(widths, reverse=True)


def test_a_trend_is_said_only_where_it_is_certain() -> None:
    """Grades that rise, that fall, that stay, and too few of them."""
    rising = [Grade.BAD] * 30 + [Grade.EXCELLENT] * 30

    def trend(grades: list[Grade]) -> str:
        work = [
            Observation(setup=FINE, at=SUNDAY + timedelta(minutes=number), grade=float(grade))
            for number, grade in enumerate(grades)
        ]
        return describe_trend(advise(work).ranked[0])

    assert trend(rising).startswith("rises by 1.")
    assert trend(rising[::-1]).startswith("falls by 1.")
    assert trend([Grade.GOOD] * 60) == "no certain trend"
    assert trend([Grade.GOOD] * 2) == "too few grades for a trend"


def test_projects_and_languages_are_counted_and_the_largest_stands_first() -> None:
    """Work without a project is in neither, a project without a language in the first alone."""
    work = [
        *(evolve(each, project="lib") for each in seen(FINE, 2)),
        *(evolve(each, project="app") for each in seen(FINE, 5)),
        *(evolve(each, project="odd") for each in seen(FINE, 1)),
        *seen(FINE, 7),
    ]
    projects = count_projects(work, {"lib": "rust", "app": "rust"})
    assert [tuple(each) for each in projects] == [
        ("app", "rust", 5),
        ("lib", "rust", 2),
        ("odd", None, 1),
    ]
    assert [tuple(each) for each in count_languages(projects)] == [("rust", 2, 7)]
