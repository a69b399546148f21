"""All setups of the record side by side: exactly of what is asked for, and nothing wider."""

from collections.abc import Mapping
from itertools import chain
from typing import NamedTuple

from attrs import evolve

from herdbook.domain.errors import NotFound
from herdbook.domain.grading import Grade
from herdbook.domain.record import leaderboard as rules
from herdbook.domain.record.advice_reasons import AdviceReasons, explain
from herdbook.domain.record.intervals import Interval
from herdbook.domain.record.leaderboard import LanguageCount, ProjectCount, WeekOfWork
from herdbook.domain.record.observations import observe
from herdbook.domain.record.setup_advice import Advice, TrackRecord, advise
from herdbook.ports.engine.dictionary import ACTIVITIES, SCORE_EVENTS
from herdbook.ports.engine.paging import select_pages
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services.record.setup_advice import EVERYWHERE, EXPLANATION, project_languages

WEEKS = 12


class RankedSetup(NamedTuple):
    """A setup in the list: what is known of it, and what its place tells."""

    record: TrackRecord
    tells: str
    trend: str
    merit: Interval
    grade_mix: dict[Grade, int]
    weeks: tuple[WeekOfWork, ...]


class Leaderboard(NamedTuple):
    """The setups by rank within a scope, and what the scope can be narrowed to.

    `projects` and `languages` are those of the whole record, whatever the scope is.
    """

    scope: str
    advice: Advice
    reasons: AdviceReasons
    setups: tuple[RankedSetup, ...]
    projects: tuple[ProjectCount, ...]
    languages: tuple[LanguageCount, ...]
    explanation: str = EXPLANATION


def leaderboard(
    uow: UnitOfWork,
    *,
    language: str | None = None,
    project: str | None = None,
    weeks: int = WEEKS,
    names: Mapping[str, str] | None = None,
    known_languages: Mapping[str, str] | None = None,
) -> Leaderboard:
    """Rank the setups by the work in a project, in a language, in both or everywhere.

    `names` has other names of a project and the one to use; `known_languages` what the files of a
    project show. Raises NotFound for a project or a language of which the record has no work.
    """
    names = names or {}
    commits = list(chain.from_iterable(select_pages(uow, uow.commits.kind)))
    retrospectives = list(chain.from_iterable(select_pages(uow, uow.retrospectives.kind)))
    events = chain.from_iterable(select_pages(uow, SCORE_EVENTS))
    activities = chain.from_iterable(select_pages(uow, ACTIVITIES))
    seen = [
        each
        if each.project is None
        else evolve(each, project=names.get(each.project, each.project))
        for each in observe(commits, retrospectives, events)
    ]
    written_in = project_languages(chain(commits, retrospectives, activities))
    written_in = {names.get(name, name): its for name, its in written_in.items()}
    written_in |= dict(known_languages or {})
    projects = rules.count_projects(seen, written_in)
    languages = rules.count_languages(projects)
    _require(project, [each.name for each in projects], "project")
    _require(language, [each.name for each in languages], "language")
    inside = [
        each
        for each in seen
        if project in (None, each.project)
        and language in (None, written_in.get(each.project or ""))
    ]
    advice = advise(inside)
    by_setup = rules.group_by_setup(inside)
    setups = tuple(
        RankedSetup(
            each,
            rules.describe_place(each, advice),
            rules.describe_trend(each),
            rules.merit_interval(each),
            rules.count_grades(by_setup[each.setup]),
            rules.weeks_of_work(by_setup[each.setup], uow.now, weeks),
        )
        for each in advice.ranked
    )
    return Leaderboard(
        _describe_scope(language, project),
        advice,
        explain(advice, inside),
        setups,
        projects,
        languages,
    )


def _require(wanted: str | None, known: list[str], what: str) -> None:
    if wanted is None or wanted in known:
        return
    hint = f"the record has {', '.join(known)}" if known else "the record has no work yet"
    raise NotFound(what, wanted, hint)


def _describe_scope(language: str | None, project: str | None) -> str:
    parts = [f"project {project}" if project else "", f"in {language}" if language else ""]
    if project is None and language is not None:
        return f"projects in {language}"
    return " ".join(filter(None, parts)) or EVERYWHERE
