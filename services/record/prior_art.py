"""Prior art: earlier work in the record that resembles a new task, with how it went."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain
from typing import NamedTuple

from herdbook.domain.errors import InvalidValue
from herdbook.domain.grading import Grade
from herdbook.domain.record.lessons import (
    Judgement,
    Lesson,
    WorkKey,
    judge_grades,
    judge_outcome,
    work_key,
    work_with_bugs,
)
from herdbook.domain.record.model import Activity, Commit, Retrospective, texts_of
from herdbook.domain.record.standing import standing_id
from herdbook.domain.record.text_search import Match, rank_documents, search_terms
from herdbook.ports.engine.dictionary import (
    ACTIVITIES,
    COMMITS,
    RETROSPECTIVES,
    SCORE_EVENTS,
    STANDINGS,
)
from herdbook.ports.engine.paging import select_all, select_pages
from herdbook.ports.engine.query import at_least, find
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services.listing import require_limit

Row = Retrospective | Commit | Activity
Grades = tuple[Grade, Grade]

MIN_RELEVANCE = 0.1
"""A match with less than this part of the best score is dropped as not similar."""
PAGE = 1_000


class Hit(NamedTuple):
    """Earlier work: its similarity to the task, the terms they share, and how it went."""

    kind: str
    id: str
    agent: str
    project: str | None
    commit_hash: str | None
    at: datetime
    score: float
    why: tuple[str, ...]
    lesson: Lesson
    because: str
    is_ours: bool
    text: str


class Recall(NamedTuple):
    """The hits: what went well, mistakes, and what nobody has graded, each best first.

    Work of the given project comes before that of others. `searched` counts all searched rows.
    """

    searched: int
    good: tuple[Hit, ...]
    mistakes: tuple[Hit, ...]
    unjudged: tuple[Hit, ...]


def recall(
    uow: UnitOfWork,
    text: str,
    *,
    project: str | None = None,
    also: Collection[str] = (),
    limit: int = 10,
) -> Recall:
    """Search the record for work that resembles a text: at most `limit` hits of each lesson.

    Work of `project` comes first, also under the other names that the record has for it (`also`);
    a third of the places is reserved for others. A commit is represented by its retrospective if
    that is found too. Raises InvalidValue for a text without a word to search for.
    """
    if not search_terms(text):
        raise InvalidValue("text", "has no word to look for; say in some words what the task is")
    require_limit(limit)
    graded: dict[WorkKey, Grades] = {}
    made: dict[WorkKey, datetime] = {}
    searched = 0

    def documents() -> Iterator[tuple[Row, str]]:
        nonlocal searched
        for row in _rows(uow):
            searched += 1
            if isinstance(row, Retrospective):
                graded[work_key(row)] = row.agent_grade, row.user_grade
            if not isinstance(row, Activity):
                # The commit is read after its retrospective, and has the exact time it was made.
                made[work_key(row)] = row.at
            yield row, _text(row)

    matches = _relevant(rank_documents(text, documents()))
    buggy = _work_with_bugs(uow, [each.key for each in matches], made)
    ours = {project, *also} - {None}
    found: dict[Lesson, list[tuple[Match[Row], Judgement]]] = {lesson: [] for lesson in Lesson}
    for match in matches:
        judgement = _judge(match.key, graded, buggy)
        found[judgement.lesson].append((match, judgement))
    shown = {lesson: _pick_hits(judged, ours, limit) for lesson, judged in found.items()}
    return Recall(searched, shown[Lesson.GOOD], shown[Lesson.MISTAKE], shown[Lesson.OPEN])


def _rows(uow: UnitOfWork) -> Iterator[Row]:
    yield from chain.from_iterable(select_pages(uow, RETROSPECTIVES, PAGE))
    yield from chain.from_iterable(select_pages(uow, COMMITS, PAGE))
    yield from chain.from_iterable(select_pages(uow, ACTIVITIES, PAGE))


def _text(row: Row) -> str:
    """The searchable text of a row."""
    return "\n".join(part for part in texts_of(row) if part)


def _relevant(matches: Sequence[Match[Row]]) -> list[Match[Row]]:
    """The matches that are similar enough, without commits represented by retrospectives."""
    if not matches:
        return []
    least = MIN_RELEVANCE * matches[0].score
    near = [each for each in matches if each.score >= least]
    represented = {work_key(each.key) for each in near if isinstance(each.key, Retrospective)}
    left = [
        each
        for each in near
        if not isinstance(each.key, Commit) or work_key(each.key) not in represented
    ]
    # Of equal scores the latest first; then by id, so that every store gives the same order.
    left.sort(key=lambda each: each.key.id)
    left.sort(key=lambda each: each.key.at, reverse=True)
    return sorted(left, key=lambda each: each.score, reverse=True)


def _work_with_bugs(
    uow: UnitOfWork, rows: Iterable[Row], made: Mapping[WorkKey, datetime]
) -> set[WorkKey]:
    """The keys of work in which bugs were found; only the ledgers of agents with bugs are read."""
    since: dict[str, datetime] = {}
    for row in rows:
        if not isinstance(row, Activity):
            at = made[work_key(row)]
            since[row.agent] = min(at, since.get(row.agent, at))
    standings = uow.get(STANDINGS, [standing_id(agent) for agent in since])
    blamed = {each.agent for each in standings if each is not None and each.bugs}
    works = {key: at for key, at in made.items() if key[0] in blamed}
    # A bug is found in work made before it: earlier entries are irrelevant to these rows.
    ledgers = (
        select_all(
            uow, find(SCORE_EVENTS, {"agent": agent, "at": at_least(since[agent])}, limit=PAGE)
        )
        for agent in sorted(blamed)
    )
    return work_with_bugs(works, chain.from_iterable(ledgers))


def _judge(row: Row, graded: Mapping[WorkKey, Grades], buggy: Collection[WorkKey]) -> Judgement:
    if isinstance(row, Activity):
        return judge_outcome(row.outcome)
    key = work_key(row)
    if key in buggy:
        return Judgement(Lesson.MISTAKE, "a bug was found in it")
    return judge_grades(*graded[key]) if key in graded else Judgement(Lesson.OPEN, "not graded yet")


def _hit(match: Match[Row], judgement: Judgement, *, is_ours: bool) -> Hit:
    row = match.key
    return Hit(
        kind=type(row).__name__.lower(),
        id=row.id,
        agent=row.agent,
        project=row.project,
        commit_hash=None if isinstance(row, Activity) else row.commit_hash,
        at=row.at,
        score=match.score,
        why=match.terms,
        lesson=judgement.lesson,
        because=judgement.because,
        is_ours=is_ours,
        text=_text(row),
    )


def _pick_hits(
    judged: Iterable[tuple[Match[Row], Judgement]], ours: Collection[str | None], limit: int
) -> tuple[Hit, ...]:
    """Hits of this project first, then others', for which a third of the places is reserved."""
    near: list[tuple[Match[Row], Judgement]] = []
    far: list[tuple[Match[Row], Judgement]] = []
    for each in judged:
        (near if each[0].key.project in ours else far).append(each)
    near = near[: limit - min(len(far), limit // 3)]
    far = far[: limit - len(near)]
    return (
        *(_hit(*each, is_ours=True) for each in near),
        *(_hit(*each, is_ours=False) for each in far),
    )
