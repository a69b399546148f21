"""The table of checks: adding one is one row. None of them writes or creates anything."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from herdbook.domain.errors import HerdbookError
from herdbook.entrypoints.operations.doctor import (
    install_checks,
    state_checks,
    store_checks,
)
from herdbook.entrypoints.operations.doctor.check_result import CheckResult, problem
from herdbook.entrypoints.operations.doctor.installation import Installation


class Check(NamedTuple):
    """The name of a check, and what gives its results."""

    name: str
    code: Callable[[Installation], Iterator[CheckResult]]


CHECKS = (
    Check("program", install_checks.check_versions),
    Check("path", install_checks.check_path),
    Check("folders", store_checks.check_folders),
    Check("disk", store_checks.check_disk),
    Check("repository", state_checks.check_repository),
    Check("stores", store_checks.check_stores),
    Check("journal", store_checks.check_journals),
    Check("backup", state_checks.check_backups),
    Check("clock", store_checks.check_clock),
    Check("hooks", install_checks.check_hooks),
    Check("mcp", install_checks.check_mcp),
    Check("spool", state_checks.check_spool),
    Check("halts", state_checks.check_halts),
    Check("imports", state_checks.check_imports),
    Check("server", state_checks.check_server),
    Check("bounds", state_checks.check_bounds),
)


def run_checks(there: Installation) -> Iterator[tuple[str, CheckResult]]:
    """The results of all checks; one that cannot be done is a problem and stops no other."""
    for check in CHECKS:
        try:
            for result in check.code(there):
                yield check.name, result
        except (HerdbookError, OSError, ValueError, KeyError) as error:
            reason = str(error) or type(error).__name__
            yield check.name, problem(f"this could not be checked: {reason}")
