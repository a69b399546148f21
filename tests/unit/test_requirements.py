"""The page of requirements names tests and decisions that there are, and leaves no row without."""

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "requirements.md"
WAYS_IN = ("e2e/", "attacks/", "clients/", "browser/", "unit/entrypoints/")
"""The folders whose tests go through a way in that users have."""
NAMED = re.compile(r"`([\w/]+\.py)::(\w+)`")
DECISION = re.compile(r"\]\((adr/[\w-]+\.md)\)")


def rows() -> list[tuple[str, str]]:
    """The criteria, and what shows them."""
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    cells = [line.strip("| ").split(" | ") for line in lines]
    assert [row for row in cells if len(row) != 2] == []
    return [(what, shown) for what, shown in cells if what != "criterion"]


@cache
def names_in(file: str) -> frozenset[str]:
    """The names of the tests in a file."""
    tree = ast.parse((ROOT / "tests" / file).read_text())
    return frozenset(each.name for each in ast.walk(tree) if isinstance(each, ast.FunctionDef))


def test_every_test_that_is_named_exists_and_goes_through_a_way_in() -> None:
    """By file and name."""
    named = [found for _, shown in rows() for found in NAMED.findall(shown)]
    assert len(named) > 100
    lacking = [
        f"{file}::{name}"
        for file, name in named
        if not file.startswith(WAYS_IN)
        or not (ROOT / "tests" / file).exists()
        or name not in names_in(file)
    ]
    assert lacking == []


def test_every_criterion_is_shown_decided_otherwise_or_open() -> None:
    """Tests, a decision record that exists, or a word that says what is missing."""
    bare = [
        what
        for what, shown in rows()
        if not NAMED.search(shown)
        and not DECISION.search(shown)
        and not shown.startswith(("**open**", "**later**: "))
    ]
    assert bare == []
    decisions = DECISION.findall(PAGE.read_text())
    assert [each for each in decisions if not (ROOT / "docs" / each).exists()] == []


def test_no_criterion_stands_there_twice() -> None:
    """Within its document."""
    for document in PAGE.read_text().split("\n## ")[1:]:
        lines = re.findall(r"^\| (.*?) \|", document, re.MULTILINE)
        criteria = [each for each in lines if each != "criterion"]
        assert sorted(set(criteria)) == sorted(criteria)
