"""Nothing is removed by accident: hints, `rm` and `undo` through the installed program."""

import json
import re
from pathlib import Path

import pytest

from herdbook.entrypoints.cli.help_text import HINTS, NOT_SUGGESTED, VERBS
from herdbook.entrypoints.operations.registry import OPERATIONS
from tests.e2e.conftest import Person

PLAN = """\
# Login
## Schema
status: approved
- [ ] Agree on columns
- [ ] Write the migration after: Agree on columns
"""


def planned(person: Person, app: Path) -> None:
    """Import a plan of one phase and two tasks."""
    (app / "plan.md").write_text(PLAN)
    person.runs(app, "import", "plan", "plan.md")


def names(person: Person, app: Path) -> list[str]:
    """The names of all tasks, in the order of the plan."""
    return [row["name"] for row in person.asks(app, "task", "list")]


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["ask"], "conversation add"),
        (["create", "foo"], "task add"),
        (["close"], "done"),
        (["next"], "claim"),
        (["start"], "claim"),
        (["tasks"], "task list"),
        (["version"], "--version"),
        (["init"], "import plan"),
        (["update", "x"], "task set"),
        (["task", "close"], "task done"),
        (["tasks", "new"], "task add"),
        (["phase", "ls"], "phase list"),
        (["redy"], "ready"),
    ],
)
def test_words_that_people_type_lead_to_the_command(
    person: Person, tmp_path: Path, words: list[str], hint: str
) -> None:
    """Each is one hint, and exit code 2."""
    told = person.tries(tmp_path, *words)
    assert told.returncode == 2
    assert f"did you mean `herdbook {hint}`?" in told.stderr


def test_no_hint_leads_to_what_removes() -> None:
    """Neither the table of words nor the nearest spelling; and every hint exists."""
    commands = {" ".join(each.words) for each in OPERATIONS} | {each.alias for each in OPERATIONS}
    for hint in HINTS.values():
        assert hint in commands | {"--version"}, hint
        assert hint.split()[-1] not in NOT_SUGGESTED
    assert not NOT_SUGGESTED & set(VERBS.values())


@pytest.mark.parametrize(
    "words",
    [["task", "rn"], ["task", "delete"], ["rm"], ["checkpoint", "prun"], ["revert"], ["ndo"]],
)
def test_a_word_close_to_a_removal_gets_no_such_hint(
    person: Person, tmp_path: Path, words: list[str]
) -> None:
    """On the command line and over JSON-RPC alike."""
    told = person.tries(tmp_path, *words)
    assert told.returncode == 2
    hinted = re.search(r"did you mean `herdbook ([^`]*)`", told.stderr)
    assert hinted is None or hinted[1].split()[-1] not in NOT_SUGGESTED
    request = {"jsonrpc": "2.0", "id": 1, "method": ".".join(words), "params": {}}
    answered = person.tries(tmp_path, "rpc", stdin=json.dumps(request) + "\n")
    hinted = re.search(r"did you mean ([\w.-]+)\?", answered.stdout)
    assert hinted is None or hinted[1].rpartition(".")[2] not in NOT_SUGGESTED


def test_rm_says_what_goes_along_and_needs_yes(person: Person, app: Path) -> None:
    """A row alone goes at once; with anything that belongs to it, only when confirmed."""
    planned(person, app)
    told = person.tries(app, "initiative", "rm", "Login")
    assert told.returncode == 1
    assert "1 phase, 2 tasks, 1 task dependency" in told.stderr
    assert names(person, app) == ["Agree on columns", "Write the migration"]
    refused = person.tries(app, "initiative", "rm", "Login", "--json")
    error = json.loads(refused.stderr)["error"]
    assert (error["type"], "2 tasks" in error["along"]) == ("ConfirmationNeeded", True)
    person.runs(app, "task", "add", "alone")
    assert "removed task" in person.runs(app, "task", "rm", "alone")
    told = person.tries(app, "initiative", "rm", "Login", "--yes")
    assert told.returncode == 0
    assert "1 phase, 2 tasks" in told.stderr
    assert names(person, app) == []


def test_rm_of_what_somebody_holds_needs_yes(person: Person, app: Path) -> None:
    """The refusal names the holder, also of a task below what is removed."""
    person.registers(app, "otter")
    person.runs(app, "task", "add", "parse")
    person.runs(app, "claim", "parse", "--agent", "otter")
    told = person.tries(app, "task", "rm", "parse")
    assert told.returncode == 1
    assert "held by otter" in told.stderr
    assert person.asks(app, "done", HERDBOOK_AGENT="otter")["status"] == "completed"
    person.runs(app, "task", "rm", "parse")


def test_undo_takes_back_the_last_change_of_who_acts(person: Person, app: Path) -> None:
    """Change after change, each actor their own; then there is nothing left to take back."""
    planned(person, app)
    person.registers(app, "otter")
    person.runs(app, "task", "add", "mine")
    person.runs(app, "task", "add", "the agent's", HERDBOOK_AGENT="otter")
    person.runs(app, "initiative", "rm", "Login", "--yes")
    assert names(person, app) == ["mine", "the agent's"]
    assert "restored initiative" in person.runs(app, "undo")
    assert "Write the migration" in names(person, app)
    assert "removed task" in person.runs(app, "undo")
    assert "mine" not in names(person, app)
    assert "the agent's" in names(person, app)
    assert "the agent's" in person.runs(app, "undo", HERDBOOK_AGENT="otter")
    told = person.tries(app, "undo", HERDBOOK_AGENT="otter")
    assert told.returncode == 3
    assert "nothing lately" in told.stderr
    journal = person.runs(app, "journal", "list", "--json").splitlines()
    notes = [json.loads(line)["note"] for line in journal]
    assert any(note and note.startswith("takes back tx_") for note in notes)


def test_undo_of_a_named_change_is_refused_where_something_changed_since(
    person: Person, app: Path
) -> None:
    """Field by field: what changed since is named, and nothing is written."""
    person.runs(app, "task", "add", "parse", "--priority", "low")
    person.runs(app, "task", "set", "parse", "--priority", "high")
    seq = json.loads(person.runs(app, "journal", "list", "--json").splitlines()[-1])["seq"]
    person.runs(app, "task", "set", "parse", "--priority", "medium")
    told = person.tries(app, "undo", f"#{seq}")
    assert told.returncode == 4
    assert re.search(r"task 'parse' \(tsk_\w+\) has changed since", told.stderr)
    assert "priority was 'high' and is 'medium'. Nothing was written" in told.stderr
    person.runs(app, "undo")
    person.runs(app, "task", "set", "parse", "--description", "other fields may change")
    person.runs(app, "undo", str(seq))
    row = person.asks(app, "task", "show", "parse")
    assert (row["priority"], row["description"]) == ("low", "other fields may change")
    assert person.tries(app, "undo", "#99999").returncode == 3


def test_undo_of_an_approval_is_refused_once_the_phase_has_begun(person: Person, app: Path) -> None:
    """By the names that people gave, with the field that stands against it; before, it works."""
    person.registers(app, "otter")
    person.runs(app, "initiative", "add", "login")
    person.runs(app, "phase", "add", "Schema", "--initiative", "login")
    person.runs(app, "task", "add", "Agree", "--phase", "Schema")
    person.runs(app, "phase", "approve", "Schema")
    assert "changed phase 'Schema'" in person.runs(app, "undo")
    assert person.asks(app, "phase", "show", "Schema")["status"] == "pending"
    person.runs(app, "phase", "approve", "Schema")
    person.runs(app, "claim", "--agent", "otter")
    told = person.tries(app, "undo")
    assert told.returncode == 4
    assert re.search(r"phase 'Schema' \(pha_\w+\) has changed since, so it stays", told.stderr)
    assert "status was 'approved' and is 'in_progress'. Nothing was written" in told.stderr
    shown = re.search(r"`herdbook (journal row \S+)`", told.stderr)
    assert shown is not None
    assert "in_progress" in person.runs(app, *shown[1].split())


def test_undo_gives_no_earlier_claim_its_fence_back(person: Person, app: Path) -> None:
    """A claim is released, not undone; a completion can be taken back by its holder."""
    person.registers(app, "otter")
    me = {"HERDBOOK_AGENT": "otter"}
    person.runs(app, "task", "add", "parse")
    person.runs(app, "claim", **me)
    told = person.tries(app, "undo", **me)
    assert told.returncode == 2
    assert "task release" in told.stderr
    person.runs(app, "done", **me)
    person.runs(app, "undo", **me)
    row = person.asks(app, "task", "show", "parse")
    assert (row["status"], row["holder"], row["fence"]) == ("in_progress", "otter", 1)
    assert person.asks(app, "done", **me)["status"] == "completed"
