"""Which setup of agents to use next, from the record: for a project, a language, or at all."""

from collections.abc import Collection, Iterator, Mapping
from itertools import chain
from typing import NamedTuple

from herdbook.domain.record.intervals import CONFIDENCE
from herdbook.domain.record.languages import main_language
from herdbook.domain.record.model import Activity, Commit, Retrospective
from herdbook.domain.record.observations import observe
from herdbook.domain.record.setup_advice import AVERAGE_COMMITS, BUG_COST, Advice, Verdict
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
"""How to read the numbers, in one line."""
EVERYWHERE = "all projects"


class Counsel(NamedTuple):
    """Advice, and from which part of the record it comes.

    `passed_over` says of every narrower part, which was asked for, why it was not enough.
    """

    scope: str
    passed_over: tuple[str, ...]
    projects: int
    advice: Advice
    explanation: str = EXPLANATION


def advise(
    uow: UnitOfWork,
    *,
    project: str | None = None,
    also: Collection[str] = (),
    language: str | None = None,
    languages: Mapping[str, str] | None = None,
) -> Counsel:
    """Rank the setups for the next project by what the narrowest part with enough data shows.

    That is the `project`, under whatever other names the record may `also` know it by; else the
    projects in a `language`; else all of them. The language of a project is the one that most of
    what the record says about it speaks of, unless `languages` tells what its files show.
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
        written_in = _languages(chain(commits, retrospectives, activities)) | dict(languages or {})
        spoken = {name for name, its in written_in.items() if its == language}
        scopes.append((f"projects in {language}", spoken))
    passed_over: list[str] = []
    for words, wanted in scopes:
        advice = advised(each for each in seen if each.project in wanted)
        if advice.verdict is not Verdict.TOO_LITTLE_DATA:
            return Counsel(words, tuple(passed_over), len(everywhere & set(wanted)), advice)
        passed_over.append(f"{words}: {advice.words}")
    return Counsel(EVERYWHERE, tuple(passed_over), len(everywhere), advised(seen))


def _languages(rows: Iterator[Commit | Retrospective | Activity]) -> dict[str, str]:
    """In which language each project is, as far as the record speaks of one."""
    texts: dict[str, list[str]] = {}
    for row in rows:
        if row.project is not None:
            texts.setdefault(row.project, []).extend(_texts(row))
    found = {project: main_language(its) for project, its in texts.items()}
    return {project: language for project, language in found.items() if language is not None}


def _texts(row: Commit | Retrospective | Activity) -> tuple[str, ...]:
    match row:
        case Retrospective():
            return row.task, row.agent_note, row.user_note
        case Activity():
            return row.task, row.actions, row.outcome, row.decisions
        case _:
            return (row.task,)
