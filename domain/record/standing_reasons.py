"""What an agent's standing means: how near it is to a skill point or a halt, and how sure it is."""

from collections.abc import Sequence
from typing import NamedTuple

from herdbook.domain.grading import FIRST_COMMUNICATION_SCORE, Experience
from herdbook.domain.record.intervals import (
    Interval,
    difference_interval,
    mean_interval,
)
from herdbook.domain.record.model import Retrospective, Standing

_FEWEST_TO_COMPARE = 3


class StandingReasons(NamedTuple):
    """The numbers that explain a standing.

    `bugs_until_halt` is 0 and `experience_missing` None for a halted agent, which does not rise.
    `mean_grade` is that of the commits that both parties graded, `graded` how many there are.
    """

    experience_missing: int | None
    bugs_until_halt: int
    graded: int
    mean_grade: Interval | None


def explain_standing(
    standing: Standing, retrospectives: Sequence[Retrospective], rules: Experience
) -> StandingReasons:
    """Explain a standing by the agent's retrospectives and the rules for experience."""
    grades = [(each.agent_grade + each.user_grade) / 2 for each in retrospectives]
    step = rules.per_skill_point * standing.skill_points
    return StandingReasons(
        max(0, step - standing.experience_points) if standing.active else None,
        max(0, standing.skill_points),
        len(grades),
        mean_interval(grades),
    )


def describe_state(agent: str, skill_points: int, *, active: bool) -> str:
    """Whether an agent may work, and what would halt it."""
    if not active:
        return f"{agent} is halted: its bugs have cost its last skill point"
    return f"{agent} may work; {_count(skill_points, 'more bug')} would halt it"


def describe_standing(standing: Standing, reasons: StandingReasons) -> tuple[str, ...]:
    """A standing in sentences: the state, the next skill point, and what the grades tell."""
    sentences = [describe_state(standing.agent, standing.skill_points, active=standing.active)]
    if reasons.experience_missing is not None:
        missing = _count(reasons.experience_missing, "more experience point")
        rise = f"{missing} will raise it to {standing.skill_points + 1} skill points"
        sentences.append(rise)
    score = standing.communication_score
    return *sentences, describe_score(score, reasons.graded, reasons.mean_grade)


def _count(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def describe_score(score: int, graded: int, mean_grade: Interval | None) -> str:
    """How a communication score came about, and how much the grades behind it tell."""
    change = f"communication score {score}, {score - FIRST_COMMUNICATION_SCORE:+d} since the start"
    if mean_grade is None:
        return f"{change}; no commit was graded by both yet, so it tells little"
    return (
        f"{change}; mean grade {mean_grade.estimate:.1f} of {graded} graded "
        f"commit{'s' if graded > 1 else ''}, with 95% confidence {mean_grade.low:.1f} to "
        f"{mean_grade.high:.1f}"
    )


def compare_graders(grades: Sequence[tuple[int, int]]) -> str:
    """How an agent's own grades differ from the person's, from pairs of them; at least one."""
    count = len(grades)
    own, user = (sum(each[which] for each in grades) / count for which in (0, 1))
    means = f"{own:.1f} by itself, {user:.1f} by you, on average of {count}"
    if count < _FEWEST_TO_COMPARE:
        return f"{means}; too few to tell whether you differ"
    found = difference_interval([mine - yours for mine, yours in grades])
    sure = f"with 95% confidence {found.low:+.1f} to {found.high:+.1f}"
    if found.low <= 0 <= found.high:
        return f"{means}; no difference is certain yet ({sure})"
    side = "higher" if found.estimate > 0 else "lower"
    return f"{means}: it grades itself {abs(found.estimate):.1f} {side} than you do ({sure})"
