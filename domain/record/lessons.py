"""What earlier work teaches: whether it went well or was a mistake, and what says so."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from functools import cache
from itertools import islice
from typing import NamedTuple

from herdbook.domain.grading import Grade
from herdbook.domain.record.model import Commit, EventKind, Retrospective, ScoreEvent
from herdbook.domain.record.text_search import terms

WorkKey = tuple[str, str, str]
"""The agent, the project and the commit by which a piece of work is known."""

_WELL = frozenset(
    {"accepted", "complete", "completed", "correct", "deployed", "done", "finished", "fixed"}
    | {"good", "green", "landed", "merged", "pass", "passed", "passing", "released", "resolved"}
    | {"shipped", "solved", "succeed", "succeeded", "success", "successful"}
    | {"work", "worked", "working"}
)
_BADLY = frozenset(
    {"abandoned", "abort", "aborted", "bad", "blocked", "broke", "broken", "bug", "conflict"}
    | {"crash", "crashed", "defect", "error", "fail", "failed", "failing", "failure", "flaky"}
    | {"incorrect", "mistake", "regression", "rejected", "reverted", "stuck", "timeout"}
    | {"unfinished", "wrong"}
)
_NEGATIONS = frozenset(
    {"cannot", "cant", "couldnt", "didnt", "doesnt", "dont", "hasnt", "havent", "isnt", "neither"}
    | {"never", "no", "not", "nothing", "wasnt", "without", "wont", "zero"}
)
_REPAIRS = frozenset({"fixed", "resolved", "solved"})
_CLAUSES = re.compile(r"[^\w\s'\u2019-]+|\bbut\b")
_REACH = 2
"""How many words behind a negation are turned around by it."""


class Lesson(StrEnum):
    """On which side a piece of earlier work is shown."""

    GOOD = "good"
    MISTAKE = "mistake"
    OPEN = "open"


class Judgement(NamedTuple):
    """A lesson, and what says that it is one."""

    lesson: Lesson
    because: str


@cache
def of_grades(agent_grade: Grade, user_grade: Grade) -> Judgement:
    """What the grades of a commit say; one that the user finds bad is a mistake in any case."""
    mean = (agent_grade + user_grade) / 2
    because = f"graded {user_grade.label} by the user, {agent_grade.label} by the agent"
    if user_grade is Grade.BAD or mean < Grade.NEUTRAL:
        return Judgement(Lesson.MISTAKE, because)
    return Judgement(Lesson.GOOD if mean > Grade.NEUTRAL else Lesson.OPEN, because)


def of_outcome(outcome: str) -> Judgement:
    """What the words about an outcome say; where they do not agree, it is open."""
    said: dict[Lesson, list[str]] = {Lesson.GOOD: [], Lesson.MISTAKE: []}
    for clause in _CLAUSES.split(outcome):
        for lesson, words in _said(terms(clause)):
            said[lesson].append(words)
    well, badly = len(said[Lesson.GOOD]), len(said[Lesson.MISTAKE])
    if well == badly:
        words = (
            "its outcome speaks of success and of failure" if well else "nothing says how it went"
        )
        return Judgement(Lesson.OPEN, words)
    lesson = Lesson.GOOD if well > badly else Lesson.MISTAKE
    return Judgement(lesson, f"its outcome says: {', '.join(dict.fromkeys(said[lesson]))}")


def _said(clause: Sequence[str]) -> Iterator[tuple[Lesson, str]]:
    """The words of a clause that praise or blame; what was repaired is no blame."""
    repaired = not _REPAIRS.isdisjoint(clause)
    turned = -1
    for term in clause:
        turned = _REACH if term in _NEGATIONS else turned - 1
        praises = term in _WELL
        if praises or (term in _BADLY and not repaired):
            words = f"not {term}" if turned >= 0 else term
            yield Lesson.GOOD if praises is (turned < 0) else Lesson.MISTAKE, words


def with_bugs(made: Mapping[WorkKey, datetime], events: Iterable[ScoreEvent]) -> set[WorkKey]:
    """The work in which bugs were found, of all that was made and when, by the rule of `observe`.

    A bug is blamed on its agent's last work before it that has none yet (in its project, if it
    names one).
    """
    bugs = [each for each in events if each.kind is EventKind.BUG]
    coming = sorted(made, key=lambda key: (made[key], key), reverse=True)
    spared: dict[str, list[WorkKey]] = {}
    found: set[WorkKey] = set()
    for bug in sorted(bugs, key=lambda each: (each.at, each.id)):
        while coming and made[coming[-1]] <= bug.at:
            work = coming.pop()
            spared.setdefault(work[0], []).append(work)
        its = spared.get(bug.agent, [])
        blamed = list(islice(_of_project(reversed(its), bug.project), bug.count))
        for work in blamed:
            its.remove(work)
        found.update(blamed)
    return found


def _of_project(works: Iterable[WorkKey], project: str | None) -> Iterator[WorkKey]:
    return (work for work in works if project in (None, work[1]))


def key_of(row: Commit | Retrospective) -> WorkKey:
    """The work that a commit or its judgement belongs to."""
    return row.agent, row.project, row.commit_hash
