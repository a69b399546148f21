"""`leaderboard`: all setups of the record side by side, per language and project."""

from typing import TypedDict

from herdbook.domain.errors import InvalidValue
from herdbook.domain.location.areas import Area
from herdbook.domain.record.intervals import Interval
from herdbook.domain.record.languages import LANGUAGES, find_language
from herdbook.domain.record.leaderboard import LanguageCount, ProjectCount, WeekOfWork
from herdbook.entrypoints.context import AppContext
from herdbook.entrypoints.hooks import spool_flush
from herdbook.entrypoints.operations.advice.handlers import (
    ReasonsAnswer,
    SetupAnswer,
    describe_reasons,
    describe_setup,
    main_language_of,
    names_of,
)
from herdbook.entrypoints.operations.answer_fields import answer_from
from herdbook.services.record import leaderboard as service

MOST_WEEKS = 52


class GradeMixAnswer(TypedDict):
    """How often the person gave each grade."""

    bad: int
    neutral: int
    good: int
    excellent: int


class RankedSetupAnswer(SetupAnswer):
    """A setup as in `advise`, what its place tells, and what it is made of."""

    tells: str
    trend_tells: str
    merit_interval: Interval
    grade_mix: GradeMixAnswer
    weeks: list[WeekOfWork]


class LeaderboardAnswer(TypedDict):
    """The setups by rank, in exactly what was asked for, and what can be asked for.

    `here` is the name of the project that one is in.
    """

    language: str | None
    project: str | None
    here: str | None
    scope: str
    verdict: str
    words: str
    reasons: ReasonsAnswer
    explanation: str
    setups: list[RankedSetupAnswer]
    languages: list[LanguageCount]
    projects: list[ProjectCount]


def leaderboard(
    app: AppContext, *, language: str | None, project: str | None, weeks: int
) -> LeaderboardAnswer:
    """Rank the setups in a language, a project, both, or everywhere."""
    if not 1 <= weeks <= MOST_WEEKS:
        raise InvalidValue("weeks", f"must be 1 to {MOST_WEEKS}")
    spoken = None if language is None else find_language(language)
    if language is not None and spoken is None:
        raise InvalidValue("language", f"{language!r} is none of {', '.join(LANGUAGES)}")
    here, *others = names_of(app)
    own = None if app.workspace.repository_id is None else main_language_of(app)
    spool_flush.flush_if_any(app)
    found = app.read(
        Area.RECORD,
        service.leaderboard,
        language=spoken,
        project=project,
        weeks=weeks,
        names=dict.fromkeys(others, here),
        known_languages={} if own is None else {here: own},
    )
    return answer_from(
        LeaderboardAnswer,
        found,
        found.advice,
        language=spoken,
        project=project,
        here=app.workspace.repository_id,
        reasons=describe_reasons(found.reasons),
        setups=[_setup(place, each, found) for place, each in enumerate(found.setups, 1)],
    )


def _setup(
    place: int, ranked: service.RankedSetup, found: service.Leaderboard
) -> RankedSetupAnswer:
    mix = {grade.label: count for grade, count in ranked.grade_mix.items()}
    return {
        **describe_setup(place, ranked.record, found.advice),
        "tells": ranked.tells,
        "trend_tells": ranked.trend,
        "merit_interval": ranked.merit,
        "grade_mix": answer_from(GradeMixAnswer, **mix),
        "weeks": list(ranked.weeks),
    }
