"""Attacks on the installed program: hostile repositories, files, servers and input.

Each test does what an attacker would do with real git, real engines and the program `herdbook`,
and states what must not happen. `docs/security.md` says what is promised against whom. Commands
may be forked from a warm process (`tests/e2e/warm_program.py`); in CI the installed program takes
the first of each kind from its start on.
"""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.attacks.hostile_git import Canary
from tests.e2e.conftest import PROGRAM, Person, app, everything_in, person, postgres_url, warm

__all__ = ["PROGRAM", "Person", "app", "everything_in", "person", "postgres_url", "warm"]

NOBODY = 65_534
GiveAway = Callable[[Path], Mapping[str, str]]


@pytest.fixture
def canary(tmp_path: Path) -> Canary:
    """Tells which of an attacker's programs ran."""
    return Canary(tmp_path / "ran")


@pytest.fixture
def give_away() -> GiveAway:
    """Make a repository somebody else's; the variables with which that is so.

    Its owner is changed for real where these tests run as root. No other account can give files
    away; there git is told to take every file for somebody else's, by the variable that its own
    tests use, so that all but the comparison of two numbers is the same. That one is tested for
    every account in `tests/unit/adapters/test_git_ownership.py`.
    """

    def change(folder: Path) -> Mapping[str, str]:
        if os.geteuid() != 0:
            return {"GIT_TEST_ASSUME_DIFFERENT_OWNER": "1"}
        for path in (folder, *folder.rglob("*")):
            os.lchown(path, NOBODY, NOBODY)
        return {}

    return change
