"""Advice from the record on the setup of agents for a project, a language, or in general."""

from collections.abc import Collection, Iterator, Mapping
from itertools import chain
from typing import NamedTuple

from herdbook.domain.record.advice_reasons import AdviceReasons, explain
from herdbook.domain.record.intervals import CONFIDENCE
from herdbook.domain.record.languages import main_language
from herdbook.domain.record.merit import AVERAGE_COMMITS, BUG_COST
from herdbook.domain.record.model import Activity, Commit, Retrospective, texts_of
from herdbook.domain.record.observations import observe
from herdbook.domain.record.setup_advice import Advice, Verdict
from herdbook.domain.record.setup_advice import advise as advised
from herdbook.ports.engine.dictionary import ACTIVITIES, SCORE_EVENTS
from herdbook.ports.engine.paging import select_pages
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork

EXPLANATION = (
    f"low..high holds the true value with {CONFIDENCE:.0%} confidence (Wilson's interval for bug "
    "rates, Student's t for grades); ranked by merit, the mean grade less "
    f"{BUG_COST} for each bug per commit, as if each setup had made {AVERAGE_COMMITS} average "
    "commits more"
)
"""How to read the numbers, in one line of text."""
EVERYWHERE = "all projects"


class ScopedAdvice(NamedTuple):
    """Advice, and the scope of the record it comes from.

    `passed_over` says for every narrower scope why it was not enough.
    """

    scope: str
    passed_over: tuple[str, ...]
    projects: int
    advice: Advice
    reasons: AdviceReasons
    explanation: str = EXPLANATION


def advise(
    uow: UnitOfWork,
    *,
    project: str | None = None,
    also: Collection[str] = (),
    language: str | None = None,
    languages: Mapping[str, str] | None = None,
) -> ScopedAdvice:
    """Rank the setups for the next project by the narrowest scope with enough data.

    The scopes are the `project`, also under the other names that the record has for it (`also`);
    the projects in a `language`; all projects. The language of a project is the one that most of
    its texts in the record mention, unless `languages` has what its files show.
    """
    commits = list(chain.from_iterable(select_pages(uow, uow.commits.kind)))
    retrospectives = list(chain.from_iterable(select_pages(uow, uow.retrospectives.kind)))
    events = chain.from_iterable(select_pages(uow, SCORE_EVENTS))
    seen = observe(commits, retrospectives, events)
    everywhere = {each.project for each in seen}
    scopes: list[tuple[str, Collection[str | None]]] = []
    if project is not None:
        scopes.append((f"project {project}", {project, *also}))
    if language is not None:
        activities = chain.from_iterable(select_pages(uow, ACTIVITIES))
        texts: Iterator[Commit | Retrospective | Activity]
        texts = chain(commits, retrospectives, activities)
        written_in = project_languages(texts) | dict(languages or {})
        spoken = {name for name, its in written_in.items() if its == language}
        scopes.append((f"projects in {language}", spoken))
    passed_over: list[str] = []
    for words, wanted in scopes:
        inside = [each for each in seen if each.project in wanted]
        advice = advised(inside)
        if advice.verdict is not Verdict.TOO_LITTLE_DATA:
            projects = len(everywhere & set(wanted))
            reasons = explain(advice, inside)
            return ScopedAdvice(words, tuple(passed_over), projects, advice, reasons)
        passed_over.append(f"{words}: {advice.words}")
    advice = advised(seen)
    reasons = explain(advice, seen)
    return ScopedAdvice(EVERYWHERE, tuple(passed_over), len(everywhere), advice, reasons)


def project_languages(rows: Iterator[Commit | Retrospective | Activity]) -> dict[str, str]:
    """The language of each project whose texts in the record mention one."""
    texts: dict[str, list[str]] = {}
    for row in rows:
        if row.project is not None:
            texts.setdefault(row.project, []).extend(texts_of(row))
    found = {project: main_language(its) for project, its in texts.items()}
    return {project: language for project, language in found.items() if language is not None}
