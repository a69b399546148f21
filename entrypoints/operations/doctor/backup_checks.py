"""Checks of the backups that are made by themselves."""

from collections.abc import Iterator
from datetime import UTC, datetime

from herdbook.domain.location.settings import OFF
from herdbook.entrypoints.cli.text import duration, plural, size
from herdbook.entrypoints.operations.backups.last_backups import SpaceBackups, last_backups
from herdbook.entrypoints.operations.doctor.check_result import CheckResult, ok, problem
from herdbook.entrypoints.operations.doctor.installation import Installation


def check_backups(there: Installation) -> Iterator[CheckResult]:
    """When each space of this folder was last backed up, and why that failed last."""
    state = last_backups(there.app)
    for space, reason in state["failures"].items():
        advice = "`herdbook backup --automatic` tries it again; earlier backups are as they were"
        yield problem(f"the last backup of {space} did not work: {reason}", advice)
    if state["setting"] == OFF:
        advice = 'backup = "daily" in your own settings has each space copied once a day'
        yield ok("no backups are made by themselves (backup = off)", advice)
    for each in state["spaces"]:
        yield ok(_describe(each))
    if not state["spaces"] and state["setting"] != OFF:
        yield ok("no backup yet: the next write starts one")


def _describe(each: SpaceBackups) -> str:
    age = datetime.now(UTC) - datetime.fromisoformat(each["last_at"])
    return (
        f"{each['space']}: last backup {duration(age.total_seconds())} ago, up to #{each['seq']}; "
        f"{plural(each['copies'], 'daily file')}, {size(each['bytes'])}"
    )
