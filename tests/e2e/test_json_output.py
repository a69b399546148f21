"""JSON for programs and agents: lean by default, whole with `--full`, chosen with `--fields`."""

import json
from pathlib import Path

from tests.e2e.conftest import Person
from tests.tokens import estimate_tokens

BOOKKEEPING = {"created_at", "updated_at", "version", "worktree_id"}


def test_json_has_neither_nulls_nor_bookkeeping_unless_asked_for(person: Person, app: Path) -> None:
    """What is there is the same either way; what `--full` adds is null or bookkeeping."""
    person.runs(app, "task", "add", "write the parser")
    person.runs(app, "agent", "add", "otter")
    for words in (("ready",), ("claim", "--agent", "otter"), ("task", "list"), ("status",)):
        lean = json.loads(person.runs(app, *words, "--json"))
        assert ": null" not in json.dumps(lean), words
    (lean,), (full,) = (
        json.loads(person.runs(app, "task", "list", *words)) for words in (["--json"], ["--full"])
    )
    assert lean == {name: full[name] for name in lean}
    assert {name for name in full if full[name] is not None} - lean.keys() == BOOKKEEPING
    assert len(full) > len(lean) + len(BOOKKEEPING)


def test_json_in_a_pipe_is_compact(person: Person, app: Path) -> None:
    """One line, and no blanks between its parts."""
    person.runs(app, "task", "add", "x")
    told = person.runs(app, "ready", "--json")
    assert told.count("\n") == 1
    assert ": " not in told


def test_fields_are_chosen_by_name(person: Person, app: Path) -> None:
    """Also empty ones, in the order asked for; a name that is none is refused with those there."""
    assert person.runs(app, "ready", "--fields", "id") == "[]\n"
    task = person.asks(app, "task", "add", "x")
    told = person.runs(app, "ready", "--fields", "name,summary, id")
    assert json.loads(told) == [{"name": "x", "summary": None, "id": task["id"]}]
    assert list(json.loads(told)[0]) == ["name", "summary", "id"]
    refused = person.tries(app, "task", "show", task["id"], "--fields", "nope")
    assert refused.returncode == 2
    error = json.loads(refused.stderr)["error"]
    assert error["field"] == "fields"
    assert "assignee_id" in error["message"]


def test_what_others_stored_keeps_its_nulls(person: Person, app: Path) -> None:
    """A null in the journal says that a field was cleared, and one in SQL is a value."""
    task = person.asks(app, "task", "add", "x", "--description", "long")
    person.runs(app, "task", "set", task["id"], "--clear", "description")
    last = json.loads(person.runs(app, "journal", "list", "--json").splitlines()[-1])
    assert last["after"]["description"] is None
    row = json.loads(person.runs(app, "sql", "select description from tasks", "--json"))
    assert row["rows"] == [[None]]


def test_ten_ready_tasks_cost_an_agent_few_tokens(person: Person, app: Path) -> None:
    """Less than half of what they took with every field and indentation."""
    for number in range(10):
        person.runs(app, "task", "add", f"write part {number} of the parser")
    assert estimate_tokens(person.runs(app, "ready", "--json")) <= 1_000
    assert estimate_tokens(person.runs(app, "ready", "--fields", "id,name")) <= 400
