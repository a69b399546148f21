"""What a check of `doctor` finds."""

from enum import StrEnum
from typing import NamedTuple


class Health(StrEnum):
    """How well something is: `problem` makes the command end with 1."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


class CheckResult(NamedTuple):
    """One sentence about one thing, and what to do about it if something is to be done."""

    health: Health
    says: str
    advice: str | None = None


def ok(says: str, advice: str | None = None) -> CheckResult:
    """Something is well."""
    return CheckResult(Health.OK, says, advice)


def warning(says: str, advice: str | None = None) -> CheckResult:
    """Something should be looked at."""
    return CheckResult(Health.WARNING, says, advice)


def problem(says: str, advice: str | None = None) -> CheckResult:
    """Something does not work."""
    return CheckResult(Health.PROBLEM, says, advice)
