"""Grades, experience and halts: how an agent's numbers move."""

from enum import IntEnum

from herdbook.domain.entity import entity
from herdbook.domain.errors import InvalidValue
from herdbook.domain.values import Count, Line

FIRST_COMMUNICATION_SCORE = 60


class Grade(IntEnum):
    """What one party thinks of a piece of work; the value is what it adds to the score."""

    BAD = -1
    NEUTRAL = 1
    GOOD = 2
    EXCELLENCE = 5

    @property
    def label(self) -> str:
        """The word for it."""
        return self.name.lower()

    @classmethod
    def parse(cls, text: str | int) -> "Grade":
        """Read a grade from its label or its number; nothing else is a grade."""
        for grade in cls:
            if type(text) in (int, cls) and text == grade.value:
                return grade
            if isinstance(text, str) and text.strip().lower() in (grade.label, str(grade.value)):
                return grade
        allowed = ", ".join(f"{grade.label} ({grade.value})" for grade in cls)
        raise InvalidValue("grade", f"{text!r} is not one of {allowed}")


@entity
class Experience:
    """How much each success is worth, and how much of it makes a skill point."""

    tool: Count = 1
    command: Count = 2
    commit: Count = 5
    per_skill_point: Line = 10_000
    grade: Count = 1


def score_after(score: int, *grades: Grade) -> int:
    """The communication score once these grades are given; it never falls below zero."""
    return max(0, score + sum(grades))


def grow(skill_points: int, experience: int, gained: int, step: int) -> tuple[int, int]:
    """Skill and experience after one success worth `gained` points.

    At `step` times the skill points the agent gains one and its experience starts at zero again.
    A halted agent gathers experience but does not rise by it: only a person reinstates it.
    """
    experience += gained
    if skill_points > 0 and experience >= step * skill_points:
        return skill_points + 1, 0
    return skill_points, experience


def grow_by_many(
    skill_points: int, experience: int, gained: int, times: int, step: int
) -> tuple[int, int]:
    """The same as `grow` called `times` times, in steps of promotions instead of single ones."""
    while times and skill_points > 0:
        missing = step * skill_points - experience
        if missing > gained * times:
            break
        times -= max(1, -(-missing // gained)) if gained else 1
        skill_points, experience = skill_points + 1, 0
    return skill_points, experience + gained * times


def is_halted(skill_points: int) -> bool:
    """Whether an agent with these skill points may claim nothing."""
    return skill_points <= 0
