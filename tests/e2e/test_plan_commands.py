"""A whole plan in one call, and back."""

from pathlib import Path

import pytest

from tests.e2e.conftest import Person

PLAN = """\
# Login
## Schema
status: approved
- [ ] Write the migration (high)
  - [ ] Test it on a copy
- [ ] Drop the old column after: Write the migration
"""


def test_an_agent_writes_a_plan_in_one_call(person: Person, app: Path) -> None:
    """From standard input; what it exports can be imported again and changes nothing."""
    told = person.tries(app, "import", "plan", "-", stdin=PLAN)
    assert told.returncode == 0, told.stderr
    assert "5 added" in told.stdout
    order = [row["name"] for row in person.asks(app, "task", "order")]
    assert order == ["Test it on a copy", "Write the migration", "Drop the old column"]
    for name in ("plan.md", "plan.jsonl"):
        format_ = "markdown" if name.endswith("md") else "lines"
        text = person.runs(app, "export", "plan", "--format", format_)
        (app / name).write_text(text)
        report = person.asks(app, "import", "plan", name)
        assert (report["added"], report["changed"], report["unchanged"]) == ([], [], 5)


def test_an_edited_export_changes_what_was_edited(person: Person, app: Path) -> None:
    """And nothing else."""
    (app / "plan.md").write_text(PLAN)
    person.runs(app, "import", "plan", "plan.md")
    text = person.runs(app, "export", "plan").replace("Drop the old", "Remove the old")
    (app / "plan.md").write_text(text)
    (changed,) = person.asks(app, "import", "plan", "plan.md")["changed"]
    assert (changed["name"], changed["fields"]) == ("Remove the old column", ["name"])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- [ ] a after: b\n", "line 1"),
        ("- [ ] a ^x after: y\n- [ ] b ^y after: x\n", "wait for one another"),
        ("\x00\x01", "line 1"),
    ],
)
def test_a_plan_that_makes_no_sense_changes_nothing(
    person: Person, app: Path, text: str, said: str
) -> None:
    """It says where, and why."""
    told = person.tries(app, "import", "plan", "-", stdin=text)
    assert told.returncode in (1, 2)
    assert said in told.stderr
    assert person.asks(app, "task", "list") == []


def test_a_file_that_is_not_there_is_named(person: Person, app: Path) -> None:
    """So is one whose name does not tell how it is written."""
    assert "nothing.md" in person.tries(app, "import", "plan", "nothing.md").stderr
    (app / "plan.txt").write_text(PLAN)
    told = person.tries(app, "import", "plan", "plan.txt")
    assert (told.returncode, "format" in told.stderr) == (2, True)
    assert person.tries(app, "import", "plan", "plan.txt", "--format", "markdown").returncode == 0
