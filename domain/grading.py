"""Grades, experience and halts: how an agent's numbers change."""

from enum import IntEnum

from herdbook.domain.entity import entity
from herdbook.domain.errors import InvalidValue
from herdbook.domain.values import Count, PositiveInt

FIRST_COMMUNICATION_SCORE = 60
"""The communication score of an agent without grades."""


class Grade(IntEnum):
    """One party's opinion of a piece of work; the value is what it adds to the score."""

    BAD = -1
    NEUTRAL = 1
    GOOD = 2
    EXCELLENT = 5
    EXCELLENCE = 5  # the label of OpenCode's agent-tracker; another name of the same grade

    @property
    def label(self) -> str:
        """The grade as a lower-case word."""
        return self.name.lower()

    @classmethod
    def parse(cls, text: str | int) -> "Grade":
        """Parse a grade from its name or its number; raises InvalidValue for anything else."""
        for name, grade in cls.__members__.items():
            if type(text) in (int, cls) and text == grade.value:
                return grade
            if isinstance(text, str) and text.strip().lower() in (name.lower(), str(grade.value)):
                return grade
        allowed = ", ".join(f"{grade.label} ({grade.value})" for grade in cls)
        raise InvalidValue("grade", f"{text!r} is not one of {allowed}")


@entity
class Experience:
    """How many points each success is worth, and how many make a skill point."""

    tool: Count = 1
    command: Count = 2
    commit: Count = 5
    per_skill_point: PositiveInt = 10_000
    grade: Count = 1


def score_after(score: int, *grades: Grade) -> int:
    """The communication score after these grades; it never falls below zero."""
    return max(0, score + sum(grades))


def grow(skill_points: int, experience: int, gained: int, step: int) -> tuple[int, int]:
    """Skill points and experience after one success worth `gained` points.

    At `step` times the skill points the agent gains one and its experience restarts at zero. A
    halted agent collects experience but does not rise: only a person reinstates it.
    """
    experience += gained
    if skill_points > 0 and experience >= step * skill_points:
        return skill_points + 1, 0
    return skill_points, experience


def grow_by_many(
    skill_points: int, experience: int, gained: int, times: int, step: int
) -> tuple[int, int]:
    """The same result as `times` calls of `grow`, computed per promotion instead of per call."""
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
