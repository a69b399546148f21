"""What people and agents do all day, through the installed program."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Person

PLAN = """\
# Login
## Schema
- [ ] Agree on columns (high)
  labels: db, first
  acceptance: "the table exists\\nand is tested"
- [ ] Write the migration after: Agree on columns
## Form
after: Schema
- [ ] Draw it
# Ledger
## Books
- [ ] Open the books
"""
OTTER = {"HERDBOOK_AGENT": "otter"}


@pytest.fixture
def planned(person: Person, app: Path) -> Path:
    """A repository with a plan that nobody has approved, and two agents."""
    (app / "plan.md").write_text(PLAN)
    person.runs(app, "import", "plan", "plan.md")
    person.registers(app, "otter", "fox")
    return app


def names(rows: list[dict[str, Any]]) -> list[str]:
    """The names of rows."""
    return [row["name"] for row in rows]


def test_nothing_ready_is_an_answer_with_its_reason(person: Person, planned: Path) -> None:
    """From `claim` and `ready`, with the command that helps, and exit code 0."""
    for words in (["claim", "--agent", "otter"], ["ready"]):
        told = person.tries(planned, *words)
        assert told.returncode == 0
        assert "no task is ready: 2 wait for phase 'Schema' to be approved" in told.stdout
        assert "herdbook phase approve" in told.stdout
    answer = person.asks(planned, "claim", "--agent", "otter")
    assert answer["task"] is None
    assert answer["reason"].startswith("no task is ready")
    assert person.asks(planned, "ready") == []


def test_phases_that_were_approved_are_a_line_each(person: Person, planned: Path) -> None:
    """As every row that was written is, and not a table with empty columns."""
    told = person.runs(planned, "phase", "approve", "Schema")
    assert re.fullmatch(r"phase [0-9a-f]{6} 'Schema': approved\n", told)


def test_names_stand_wherever_ids_do(person: Person, planned: Path) -> None:
    """As long as they are unique; if not, the ids they could mean are told."""
    (schema,) = person.asks(planned, "phase", "approve", "Schema")
    assert schema["status"] == "approved"
    assert person.asks(planned, "phase", "show", "Schema") == schema
    added = person.asks(
        planned, "task", "add", "Seed it", "--phase", "Schema", "--after", "Write the migration",
        "Agree on columns", "--label", "db", "--label", "late",
    )  # fmt: skip
    assert added["phase_id"] == schema["id"]
    assert sorted(names(person.asks(planned, "task", "waits-for", "Seed it"))) == [
        "Agree on columns",
        "Write the migration",
    ]
    child = person.asks(planned, "task", "add", "Part", "--parent", "Seed it")
    assert child["parent_task_id"] == added["id"]
    person.runs(planned, "task", "add", "Draw it")
    told = person.tries(planned, "task", "show", "Draw it")
    assert told.returncode == 2
    assert len(re.findall(r"tsk_\w+", told.stderr)) == 2


def test_a_named_task_is_claimed_or_the_reason_is_told(person: Person, planned: Path) -> None:
    """Who holds it and until when, or what it waits for; the holder gets its claim again."""
    told = person.tries(planned, "claim", "Draw it", **OTTER)
    assert told.returncode == 1
    assert "phase 'Form' to be approved" in told.stderr
    person.runs(planned, "phase", "approve", "Schema", "Form")
    told = person.tries(planned, "claim", "Write the migration", **OTTER)
    assert told.returncode == 1
    assert "it waits for 'Agree on columns'" in told.stderr
    first = person.asks(planned, "claim", "Agree on columns", **OTTER)
    again = person.asks(planned, "claim", "Agree on columns", "--ttl", "2h", **OTTER)
    assert again["fence"] == first["fence"]
    assert again["lease_until"] > first["lease_until"]
    told = person.tries(planned, "claim", "Agree on columns", "--json", HERDBOOK_AGENT="fox")
    error = json.loads(told.stderr)["error"]
    assert (told.returncode, error["type"]) == (1, "TaskNotClaimable")
    assert error["reason"].startswith("otter holds it until 20")
    person.runs(planned, "done", **OTTER)
    told = person.tries(planned, "claim", "Agree on columns", **OTTER)
    assert "it is completed" in told.stderr


def test_results_are_one_line(person: Person, planned: Path) -> None:
    """What was done to what, with a short id and its name."""
    person.runs(planned, "phase", "approve", "Schema")
    for words, said in (
        (["task", "add", "write the parser"], r"added task [0-9a-f]{6} 'write the parser'"),
        (["task", "set", "write the parser", "--priority", "low"], r"saved task [0-9a-f]{6} '.*'"),
        (["message", "add", "hello"], r"message [0-9a-f]{6} 'hello': pending"),
        (["task", "rm", "write the parser"], r"removed task [0-9a-f]{6} 'write the parser'"),
        (["agent", "add", "wolf"], r"added agent [0-9a-f]{6} 'wolf'"),
    ):
        assert re.fullmatch(said + "\n", person.runs(planned, *words)), words
    person.runs(planned, "claim", **OTTER)
    assert re.fullmatch(
        r"task [0-9a-f]{6} is held until \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\n",
        person.runs(planned, "task", "heartbeat", **OTTER),
    )
    assert person.runs(planned, "done", **OTTER).endswith(" 'Agree on columns': completed\n")


def test_task_show_is_worth_reading(person: Person, planned: Path) -> None:
    """Place, labels, holder, lease, dependencies both ways with their states, and history."""
    person.runs(planned, "phase", "approve", "Schema")
    person.runs(planned, "claim", "Agree on columns", **OTTER)
    row = person.asks(planned, "task", "show", "Agree on columns")
    assert (row["phase"], row["initiative"], row["holder"]) == ("Schema", "Login", "otter")
    assert row["labels"] == ["db", "first"]
    assert row["acceptance"] == "the table exists\nand is tested"
    assert row["state"] == "held"
    assert names(row["dependents"]) == ["Write the migration"]
    (needing,) = row["dependents"]
    assert (needing["status"], needing["state"]) == ("pending", "waiting")
    assert row["lease_until"].endswith("+00:00")
    assert [each["who"] == "otter" for each in row["history"]] == [False, True]
    text = person.runs(planned, "task", "show", "Agree on columns", TZ="Asia/Tokyo")
    for part in (
        "in Login > Schema",
        "labels db, first",
        "holder otter, until 20",
        "needed by:",
        "pending         Write the migration",
        "otter: status in progress, assignee otter",
        row["id"],
    ):
        assert part in text, part
    utc = row["lease_until"][:19].replace("T", " ")
    assert utc not in text, "people read local times"
    waiting = person.asks(planned, "task", "show", "Draw it")
    assert [(each["kind"], each["name"]) for each in waiting["waits_for"]] == [
        ("phase", "Form"),
        ("phase", "Schema"),
    ]
    assert names(person.asks(planned, "task", "waits-for", "Draw it")) == ["Form", "Schema"]


def test_lists_have_the_order_of_the_plan_and_say_what_they_leave_out(
    person: Person, planned: Path
) -> None:
    """Page after page; "2 of 4" for people on standard output, for programs beside it."""
    person.runs(planned, "task", "add", "of no phase")
    everything = ["Agree on columns", "Write the migration", "Draw it", "Open the books"]
    everything.append("of no phase")
    assert names(person.asks(planned, "task", "list")) == everything
    assert names(person.asks(planned, "phase", "list")) == ["Schema", "Form", "Books"]
    assert names(person.asks(planned, "initiative", "list")) == ["Login", "Ledger"]
    seen: list[str] = []
    after: list[str] = []
    while page := person.asks(planned, "task", "list", "--limit", "2", *after):
        seen += names(page)
        after = ["--after", page[-1]["id"]]
    assert seen == everything
    assert "2 of 5" in person.runs(planned, "task", "list", "--limit", "2")
    told = person.tries(planned, "task", "list", "--limit", "2", "--json")
    assert "2 of 5" in told.stderr
    assert "of" not in person.tries(planned, "task", "list", "--limit", "5", "--json").stderr
    person.runs(planned, "phase", "approve", "Schema", "Books")
    assert "1 of 3" in person.runs(planned, "ready", "--limit", "1")
    assert "1 of more" in person.runs(planned, "task", "list", "--limit", "1", "--label", "db") or (
        names(person.asks(planned, "task", "list", "--label", "db")) == ["Agree on columns"]
    )


def test_ids_in_lists_are_short_and_long_for_programs(person: Person, planned: Path) -> None:
    """Six characters that name the row."""
    first, *_ = person.runs(planned, "task", "list").splitlines()[1:]
    short = first.split()[0]
    assert re.fullmatch(r"[0-9a-f]{6}", short)
    row = person.asks(planned, "task", "show", short)
    assert row["id"].startswith(f"tsk_{short}")
    assert len(person.asks(planned, "task", "list")[0]["id"]) > 20


def test_labels_and_acceptance_make_the_round_trip(person: Person, planned: Path) -> None:
    """Through Markdown and JSON Lines; a list by label has what carries it."""
    person.runs(planned, "task", "set", "Draw it", "--label", "ui", "x/y", "--acceptance", "seen")
    assert names(person.asks(planned, "task", "list", "--label", "ui")) == ["Draw it"]
    for form in ("markdown", "lines"):
        text = person.runs(planned, "export", "plan", "--format", form)
        (planned / "again").write_text(text)
        report = person.asks(planned, "import", "plan", "again", "--format", form)
        assert (report["added"], report["changed"]) == ([], []), text
    assert "labels: ui, x/y" in person.runs(planned, "export", "plan")
    told = person.tries(planned, "task", "set", "Draw it", "--label", "two words")
    assert told.returncode == 2
    assert "is not a label" in told.stderr
    person.runs(planned, "task", "set", "Draw it", "--clear", "labels")
    assert person.asks(planned, "task", "show", "Draw it")["labels"] is None


def test_search_finds_names_texts_and_talk(person: Person, planned: Path) -> None:
    """Every word, in any case; the best first, with how many there are."""
    person.runs(planned, "message", "add", "The COLUMNS are agreed on")
    person.runs(planned, "task", "set", "Draw it", "--description", "show all columns of it")
    answer = person.asks(planned, "search", "columns")
    assert [(each["kind"], each["name"]) for each in answer["matches"]] == [
        ("task", "Agree on columns"),
        ("message", "The COLUMNS are agreed on"),
        ("task", "Draw it"),
    ]
    assert (answer["total"], answer["complete"]) == (3, True)
    assert [each["name"] for each in person.asks(planned, "search", "tested table")["matches"]] == [
        "Agree on columns"
    ]
    assert "1 of 3" in person.runs(planned, "search", "columns", "--limit", "1")
    assert "nothing was found" in person.runs(planned, "search", "unicorn")
    assert person.tries(planned, "search", "  ").returncode == 2


def test_a_status_line_fits_into_a_prompt(person: Person, planned: Path) -> None:
    """How much is held and ready, and what waits for the person."""
    assert person.runs(planned, "status", "--line") == "nothing to do\n"
    person.runs(planned, "phase", "approve", "Schema", "Books")
    person.runs(planned, "claim", **OTTER)
    person.runs(planned, "message", "add", "hello", "--agent", "otter")
    assert person.runs(planned, "status", "--line") == "1 held, 1 ready, 1 unread\n"


def test_review_threads_show_place_author_text_and_replies(person: Person, planned: Path) -> None:
    """And a list of comments has all of that in a line each."""
    comment = person.asks(
        planned, "review", "add", "why?", "--phase", "Schema", "--at", "src/a.py:7",
        "--author", "fox",
    )  # fmt: skip
    person.runs(planned, "review", "reply", comment["id"], "because\nof that", "--author", "otter")
    text = person.runs(planned, "review", "threads", "Schema")
    assert text.startswith("src/a.py:7  (added, open)")
    assert "  fox: why?\n  otter: because\n    of that" in text
    for place in ((), ("--at", "src/a.py"), ("--at", ":7"), ("--at", "a.py:0")):
        told = person.tries(planned, "review", "add", "x", "--phase", "Schema", *place)
        assert told.returncode == 2, place
    person.runs(planned, "review", "resolve", comment["id"])
    assert "resolved" in person.runs(planned, "review", "threads", "Schema")
    assert "src/a.py:7" in person.runs(planned, "review", "list")


def test_plan_says_why_a_task_of_a_pending_phase_waits(person: Person, planned: Path) -> None:
    """The phase and its state, beside the task."""
    text = person.runs(planned, "plan")
    assert "phase Schema is pending" in text
    person.runs(planned, "phase", "approve", "Schema")
    assert "phase Schema is pending" not in person.runs(planned, "plan")


def test_completion_knows_names_and_ids(person: Person, planned: Path) -> None:
    """From the store of the folder; without one, and from outside, there are none."""

    def offered(*words: str) -> set[str]:
        return set(person.runs(planned, "--complete", *words).splitlines())

    assert offered("claim", "--agent", "") == {"otter", "fox"}
    assert {"Schema", "Form", "Books"} <= offered("phase", "approve", "")
    assert offered("phase", "approve", "Sch") == {"Schema"}
    assert offered("agent", "show", "ot") == {"otter"}
    row = person.asks(planned, "task", "list")[0]
    short = row["id"][4:10]
    assert short in offered("task", "show", "")
    assert offered("claim", short[:3]) >= {short}
    assert offered("claim", row["id"][:10]) == {row["id"]}
    assert offered("task", "add", "x", "--phase", "Fo") == {"Form"}
    assert offered("status", "--l") == {"--line"}
    outside = person.tries(planned.parent, "--complete", "task", "show", "")
    assert (outside.returncode, outside.stderr) == (0, "")
    assert short not in outside.stdout


def test_a_board_of_one_label_has_its_tasks_alone(person: Person, planned: Path) -> None:
    """Phases without such a task are left out, and the numbers count what is shown."""
    person.runs(planned, "task", "add", "loose", "--label", "db", "ui")
    answer = person.asks(planned, "board", "--label", "db")
    assert [each["name"] for each in answer["initiatives"]] == ["Login", None]
    assert sum(answer["tasks"].values()) == 2
    text = person.runs(planned, "board", "--label", "ui")
    assert "loose" in text
    assert "Schema" not in text
    assert person.tries(planned, "board", "--label", "two words").returncode == 2


def test_an_agent_asks_a_person_in_plain_words(person: Person, planned: Path) -> None:
    """One question as it is, several as JSON."""
    person.runs(planned, "agent", "wait", "--questions", "which licence?", **OTTER)
    assert "which licence?" in person.runs(planned, "agent", "waiting")
    row = person.asks(planned, "agent", "wait", "--questions", '["a?", "b?"]', **OTTER)
    assert row["pending_questions"] == ["a?", "b?"]


def test_the_inbox_names_the_senders(person: Person, planned: Path) -> None:
    """And says how many messages it leaves out."""
    for text in ("one", "two", "three"):
        person.runs(planned, "message", "add", text, **OTTER)
    text = person.runs(planned, "message", "inbox", "--limit", "2")
    assert re.search(r"ID +FROM +SENT", text)
    assert re.search(r"^\w{6} +otter +\d{4}-\d\d-\d\d .*one$", text, re.MULTILINE)
    assert "2 of 3" in text
    first, *_ = person.asks(planned, "message", "inbox")
    assert (first["content"], first["sender"], first["sender_type"]) == ("one", "otter", "agent")


@pytest.mark.parametrize("backend", ["lmdb", "duckdb", "postgres"])
def test_a_day_is_the_same_on_every_backend(
    person: Person, app: Path, backend: str, request: pytest.FixtureRequest
) -> None:
    """Plan, approve, claim by name, search, remove, undo and complete."""
    is_server = backend == "postgres"
    person.chooses(request.getfixturevalue("postgres_url") if is_server else backend)
    (app / "plan.md").write_text(PLAN)
    person.runs(app, "import", "plan", "plan.md")
    person.registers(app, "otter")
    assert person.asks(app, "claim", **OTTER)["task"] is None
    person.runs(app, "phase", "approve", "Schema")
    assert person.asks(app, "claim", "Agree on columns", **OTTER)["fence"] == 1
    assert "1 of 4" in person.runs(app, "task", "list", "--limit", "1")
    assert names(person.asks(app, "task", "list", "--label", "db")) == ["Agree on columns"]
    assert person.asks(app, "search", "TESTED")["total"] == 1
    assert person.tries(app, "initiative", "rm", "Login").returncode == 1
    person.runs(app, "initiative", "rm", "Login", "--yes")
    assert names(person.asks(app, "task", "list")) == ["Open the books"]
    person.runs(app, "undo")
    row = person.asks(app, "task", "show", "Agree on columns")
    assert (row["holder"], row["labels"]) == ("otter", ["db", "first"])
    assert person.asks(app, "done", **OTTER)["status"] == "completed"
    assert person.asks(app, "board")["tasks"]["completed"] == 1


def test_an_accepted_proposal_says_what_it_made(person: Person, planned: Path) -> None:
    """The task by its name, beside the change set."""
    proposal = person.asks(
        planned, "proposal", "add", "Split it", "--target-type", "task", "--agent", "otter",
        "--initiative", "Login", "--summary", "too large", "--content", "in two",
    )  # fmt: skip
    text = person.runs(planned, "proposal", "accept", proposal["id"])
    assert re.search(r"^change set \w{6} 'too large': applied$", text, re.MULTILINE)
    assert re.search(r"^  added task \w{6} 'Split it'$", text, re.MULTILINE)
    assert "Split it" in names(person.asks(planned, "task", "list"))


def test_daily_commands_have_short_forms(person: Person, planned: Path) -> None:
    """What agents type all day is one word; other words lead to the command."""
    person.runs(planned, "phase", "approve", "Schema")
    for short, whole in (("ready", "task ready"), ("claim", "task claim"), ("done", "task done")):
        assert person.runs(planned, short, "--help") == person.runs(
            planned, *whole.split(), "--help"
        )
    for ending in ("release", "fail", "done"):
        person.runs(planned, "claim", "Agree on columns", **OTTER)
        person.runs(planned, "heartbeat", **OTTER)
        person.runs(planned, ending, **OTTER)
    for word in ("add", "show", "list"):
        told = person.tries(planned, word, "Agree on columns")
        assert f"did you mean `herdbook task {word}`?" in told.stderr
