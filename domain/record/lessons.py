"""Judges earlier work: whether it went well or was a mistake, and the evidence."""

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
"""The agent, the project and the commit that identify a piece of work."""

_PRAISE = frozenset(
    {"accepted", "complete", "completed", "correct", "deployed", "done", "finished", "fixed"}
    | {"good", "green", "landed", "merged", "pass", "passed", "passing", "released", "resolved"}
    | {"shipped", "solved", "succeed", "succeeded", "success", "successful"}
    | {"work", "worked", "working"}
)
_BLAME = frozenset(
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
_NEGATION_REACH = 2
"""How many words after a negation it inverts."""


class Lesson(StrEnum):
    """How a piece of earlier work is classified."""

    GOOD = "good"
    MISTAKE = "mistake"
    OPEN = "open"


class Judgement(NamedTuple):
    """A lesson, and the reason for it."""

    lesson: Lesson
    because: str


@cache
def judge_grades(agent_grade: Grade, user_grade: Grade) -> Judgement:
    """The lesson of a commit's grades; one that the user grades bad is always a mistake."""
    mean = (agent_grade + user_grade) / 2
    because = f"graded {user_grade.label} by the user, {agent_grade.label} by the agent"
    if user_grade is Grade.BAD or mean < Grade.NEUTRAL:
        return Judgement(Lesson.MISTAKE, because)
    return Judgement(Lesson.GOOD if mean > Grade.NEUTRAL else Lesson.OPEN, because)


def judge_outcome(outcome: str) -> Judgement:
    """The lesson of the words about an outcome; open where they disagree."""
    words_by_lesson: dict[Lesson, list[str]] = {Lesson.GOOD: [], Lesson.MISTAKE: []}
    for clause in _CLAUSES.split(outcome):
        for lesson, words in _judging_words(terms(clause)):
            words_by_lesson[lesson].append(words)
    well, badly = len(words_by_lesson[Lesson.GOOD]), len(words_by_lesson[Lesson.MISTAKE])
    if well == badly:
        words = (
            "its outcome speaks of success and of failure" if well else "nothing says how it went"
        )
        return Judgement(Lesson.OPEN, words)
    lesson = Lesson.GOOD if well > badly else Lesson.MISTAKE
    return Judgement(
        lesson, f"its outcome says: {', '.join(dict.fromkeys(words_by_lesson[lesson]))}"
    )


def _judging_words(clause: Sequence[str]) -> Iterator[tuple[Lesson, str]]:
    """The words of a clause that praise or blame; a problem that was fixed is no blame."""
    repaired = not _REPAIRS.isdisjoint(clause)
    turned = -1
    for term in clause:
        turned = _NEGATION_REACH if term in _NEGATIONS else turned - 1
        praises = term in _PRAISE
        if praises or (term in _BLAME and not repaired):
            words = f"not {term}" if turned >= 0 else term
            yield Lesson.GOOD if praises is (turned < 0) else Lesson.MISTAKE, words


def work_with_bugs(made: Mapping[WorkKey, datetime], events: Iterable[ScoreEvent]) -> set[WorkKey]:
    """The work in which bugs were found, by the rule of `observe`.

    `made` is all work with the time it was made. A bug is assigned to its agent's last work before
    it that has none yet (in its project, if it names one).
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
        blamed = list(islice(_in_project(reversed(its), bug.project), bug.count))
        for work in blamed:
            its.remove(work)
        found.update(blamed)
    return found


def _in_project(works: Iterable[WorkKey], project: str | None) -> Iterator[WorkKey]:
    return (work for work in works if project in (None, work[1]))


def work_key(row: Commit | Retrospective) -> WorkKey:
    """The key of the work that a commit or a retrospective belongs to."""
    return row.agent, row.project, row.commit_hash
