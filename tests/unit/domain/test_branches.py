"""Branches that are named after initiatives."""

import shutil
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from herdbook.domain.plan.branches import branch_for


@pytest.mark.parametrize(
    ("name", "branch"),
    [
        ("User auth", "herd/user-auth"),
        ("  Ship: the login!  ", "herd/ship-the-login"),
        ("שלום עולם", "herd/שלום-עולם"),
        ("...", "herd/initiative"),
        ("$(rm -rf ~); `x` ../../etc", "herd/rm-rf-x-etc"),
        ("x" * 500, "herd/" + "x" * 60),
    ],
)
def test_a_branch_is_named_after_its_initiative(name: str, branch: str) -> None:
    """In lower case, with hyphens."""
    assert branch_for(name) == branch


def test_a_branch_that_is_taken_gets_a_number() -> None:
    """The first that is free."""
    assert branch_for("x", {"herd/x"}) == "herd/x-2"
    assert branch_for("x", {"herd/x", "herd/x-2"}) == "herd/x-3"


@settings(max_examples=30)
@given(name=st.text(min_size=1, max_size=100))
def test_git_takes_every_such_name(name: str) -> None:
    """Whatever an initiative is called."""
    git = shutil.which("git")
    assert git is not None
    branch = branch_for(name)
    subprocess.run([git, "check-ref-format", "--branch", branch], check=True, capture_output=True)
