"""Rows of any kind on the command line: add, list, show, set, rm, and input of every bad kind."""

import json
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from herdbook.domain.location.areas import Area
from herdbook.domain.plan.model import Task
from herdbook.domain.record.standing import EntryContext, bug_entry
from tests.e2e.conftest import PROGRAM, Person


def added(person: Person, app: Path, *words: str) -> dict[str, Any]:
    """What an `add` answers."""
    row: dict[str, Any] = person.asks(app, *words)
    return row


def test_a_row_goes_all_the_way(person: Person, app: Path) -> None:
    """It is added, listed, shown, changed and removed, by the beginning of its id."""
    initiative = added(person, app, "initiative", "add", "ship the login")
    task = added(person, app, "task", "add", "parse", "--initiative", initiative["id"][4:10])
    assert task["initiative_id"] == initiative["id"]
    assert (task["priority"], task["status"], task["version"]) == ("medium", "pending", 1)
    short = task["id"][:9]
    assert person.asks(app, "task", "show", short).items() >= task.items()
    assert person.asks(app, "task", "list", "--initiative", initiative["id"]) == [task]
    assert person.asks(app, "task", "list", "--status", "completed") == []
    changed = person.asks(app, "task", "set", short, "--name", "parse it", "--priority", "high")
    assert (changed["name"], changed["priority"], changed["version"]) == ("parse it", "high", 2)
    cleared = person.asks(app, "task", "set", short, "--clear", "initiative,description")
    assert cleared["initiative_id"] is None
    (gone,) = person.asks(app, "task", "rm", short)
    assert gone["id"] == task["id"]
    assert person.asks(app, "task", "list") == []


def test_a_list_comes_in_pages(person: Person, app: Path) -> None:
    """Each page begins behind the last row of the one before."""
    names = {f"project {number}" for number in range(5)}
    for name in names:
        person.runs(app, "project", "add", name, "--url", f"https://example.com/{name}")
    seen: list[str] = []
    after: list[str] = []
    while page := person.asks(app, "project", "list", "--limit", "2", *after):
        assert len(page) <= 2
        seen += [row["name"] for row in page]
        after = ["--after", page[-1]["id"]]
    assert sorted(seen) == sorted(names)


def test_an_agent_is_named_by_its_name(person: Person, app: Path) -> None:
    """Wherever its id could stand."""
    agent = added(person, app, "agent", "add", "brisk-otter")
    assert person.asks(app, "agent", "show", "brisk-otter")["id"] == agent["id"]
    assert agent["worktree_id"] == person.asks(app, "where")["worktree_id"]
    assert added(person, app, "agent", "add")["name"] != "brisk-otter"


def test_text_comes_from_standard_input(person: Person, app: Path) -> None:
    """With -, whole, whatever script it is written in."""
    text = "שלום \U0001f98a\nsecond line"
    told = person.tries(app, "task", "add", "x", "--description", "-", "--json", stdin=text)
    assert told.returncode == 0
    assert text.splitlines()[0] in told.stdout
    (row,) = person.asks(app, "task", "list")
    assert row["description"] == text


def test_a_secret_is_taken_from_standard_input_and_never_shown(person: Person, app: Path) -> None:
    """Neither in a list nor in the journal nor in SQL."""
    told = person.tries(
        app, "account", "add", "me@example.com", "--credentials", "-", stdin="S3CRET"
    )
    assert told.returncode == 0
    refused = person.tries(app, "account", "add", "me@example.com", "--credentials", "S3CRET")
    assert refused.returncode == 2
    said = told.stdout + refused.stderr + person.runs(app, "account", "list", "--json")
    said += person.runs(app, "sql", "SELECT * FROM accounts", "--area", "record")
    assert "S3CRET" not in said
    assert "***" in said


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["task", "show", "nothing"], 3, "there is no task 'nothing'"),
        (["task", "show", "ab"], 3, "there is no task 'ab'"),
        (["task", "add", ""], 2, "name"),
        (["task", "add", "x" * 600], 2, "name"),
        (["task", "add", "x", "--initiative", "nothing"], 3, "initiative"),
        (
            ["task", "add", "x", "--priority", "urgent"],
            2,
            "priority: must be one of low, medium, high",
        ),
        (["task", "add", "x", "--order", "first"], 2, "order: must be a whole number"),
        (["task", "set", "nothing", "--name", "x"], 3, "there is no task"),
        (["task", "rm", "nothing"], 3, "there is no task"),
        (["task", "list", "--limit", "0"], 2, "limit"),
        (["task", "list", "--after", "nothing"], 3, "there is no task"),
        (["agent", "wait", "--questions", "{"], 2, "is not JSON"),
        (["account", "exhaust", "x", "--until", "soon"], 2, "is not a time"),
        (["account", "exhaust", "x", "--until", "2026-05-01T12:00"], 2, "time zone"),
        (["claim", "--ttl", "long"], 2, "is not a duration"),
        (["claim"], 2, "HERDBOOK_AGENT"),
        (["done", "nothing"], 3, "there is no task"),
    ],
)
def test_bad_input_is_one_sentence(
    person: Person, app: Path, words: list[str], code: int, said: str
) -> None:
    """With its exit code, and nothing is written."""
    told = person.tries(app, *words)
    assert told.returncode == code, told.stderr
    assert said in told.stderr
    assert "Traceback" not in told.stderr
    assert person.asks(app, "task", "list") == []


def test_an_ambiguous_beginning_names_what_it_could_be(person: Person, app: Path) -> None:
    """Nothing is guessed."""
    here = person.at(app)
    tasks = [Task(id=f"tsk_abcd{number}", name=str(number)) for number in range(7)]
    here.run(Area.WORK, lambda uow: uow.tasks.add_all(tasks))
    told = person.tries(app, "task", "show", "abcd")
    assert told.returncode == 2
    assert "tsk_abcd0, tsk_abcd1" in told.stderr
    assert "and others" in told.stderr
    assert person.asks(app, "task", "show", "abcd3")["name"] == "3"


def test_binary_on_standard_input_is_refused(person: Person, app: Path) -> None:
    """With a sentence, and nothing is written."""
    ended = subprocess.run(
        [PROGRAM, "task", "add", "x", "--description", "-"],
        cwd=app,
        env=person.variables,
        input=b"\xff\xfe\x00",
        capture_output=True,
        check=False,
    )
    assert ended.returncode == 2
    assert b"no UTF-8 text" in ended.stderr
    assert person.asks(app, "task", "list") == []


def test_a_megabyte_is_a_text_but_no_name(person: Person, app: Path) -> None:
    """Names are short, texts are long."""
    told = person.tries(app, "task", "add", "-", stdin="x" * 2**20)
    assert told.returncode == 2
    told = person.tries(app, "task", "add", "x", "--description", "-", stdin="y" * 2**20)
    assert told.returncode == 0
    (row,) = person.asks(app, "task", "list")
    assert len(row["description"]) == 2**20


def test_claim_and_done_as_the_agent_that_acts(person: Person, app: Path) -> None:
    """An agent that says who it is needs neither its id nor a fence."""
    person.runs(app, "agent", "add", "otter")
    person.runs(app, "agent", "add", "lynx")
    task = added(person, app, "task", "add", "parse")
    me = {"HERDBOOK_AGENT": "otter"}
    held = person.asks(app, "claim", **me)
    assert (held["task"]["id"], held["fence"]) == (task["id"], 1)
    assert person.asks(app, "claim", **me)["task"] is None
    assert person.tries(app, "done", task["id"], HERDBOOK_AGENT="lynx").returncode == 4
    assert person.tries(app, "done", task["id"], "--fence", "7", **me).returncode == 4
    done = person.asks(app, "done", task["id"][:8], "--summary", "see x", **me)
    assert (done["status"], done["summary"]) == ("completed", "see x")
    assert person.tries(app, "done", task["id"], **me).returncode == 4
    (last,) = person.runs(app, "journal", "list", "--json").splitlines()[-1:]
    assert json.loads(last)["agent"] == "otter"


def test_done_without_an_id_is_about_the_task_that_is_held(person: Person, app: Path) -> None:
    """As long as there is one alone."""
    me = {"HERDBOOK_AGENT": "otter"}
    person.runs(app, "agent", "add", "otter")
    for name in ("one", "two"):
        person.runs(app, "task", "add", name)
    assert person.tries(app, "done", **me).returncode == 3
    person.runs(app, "claim", **me)
    assert person.asks(app, "done", **me)["status"] == "completed"
    person.runs(app, "claim", **me)
    person.runs(app, "task", "add", "three")
    person.runs(app, "claim", **me)
    told = person.tries(app, "done", **me)
    assert told.returncode == 2
    assert "must be named" in told.stderr


def test_a_cycle_is_refused_with_its_names(person: Person, app: Path) -> None:
    """Exit code 1, and the edge is not there."""
    one = added(person, app, "task", "add", "one")["id"]
    two = added(person, app, "task", "add", "two")["id"]
    person.runs(app, "task", "after", two, one)
    told = person.tries(app, "task", "after", one, two)
    assert told.returncode == 1
    assert one in told.stderr
    assert [row["name"] for row in person.asks(app, "task", "order")] == ["one", "two"]
    assert [[row["name"] for row in wave] for wave in person.asks(app, "task", "waves")] == [
        ["one"],
        ["two"],
    ]
    person.runs(app, "task", "not-after", two, one)
    assert person.tries(app, "task", "not-after", two, one).returncode == 3


def test_the_journal_is_followed_line_by_line(person: Person, app: Path) -> None:
    """As JSON Lines, while another terminal writes; Ctrl-C ends it."""
    person.runs(app, "task", "add", "before")
    last = json.loads(person.runs(app, "journal", "list", "--json").splitlines()[-1])["seq"]
    following = subprocess.Popen(
        [PROGRAM, "journal", "follow", "--since", str(last), "--json"],
        cwd=app,
        env={**person.variables, "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    person.runs(app, "task", "add", "after")
    assert following.stdout is not None
    assert "after" in following.stdout.readline()
    following.send_signal(signal.SIGINT)
    _, complaint = following.communicate(timeout=60)
    assert following.returncode == 130
    assert "Traceback" not in complaint


def test_a_log_is_added_to_and_printed(person: Person, app: Path) -> None:
    """Of an agent, piece by piece; `herdbook log` is short for it."""
    person.runs(app, "agent", "add", "otter")
    for text in ("one", "two\nlines \x1b[31m"):
        person.runs(app, "log", "add", text, "--agent", "otter")
    assert person.runs(app, "log", "otter") == "one\ntwo\nlines \\x1b[31m\n"
    lines = person.runs(app, "log", "list", "otter", "--json", "--limit", "1").splitlines()
    assert [json.loads(line)["content"] for line in lines] == ["one"]
    assert person.asks(app, "log", "rm", "otter") == {"removed": 2}
    assert person.runs(app, "log", "otter") == ""


def test_a_halted_agent_claims_nothing(person: Person, app: Path) -> None:
    """Exit code 1; where the record is out of reach, it may go on, with a word about it."""
    person.runs(app, "agent", "add", "otter")
    person.runs(app, "task", "add", "x")
    here = person.at(app)
    bug = bug_entry(EntryContext(agent="otter", at=datetime.now(UTC)))
    here.run(Area.RECORD, lambda uow: uow.ledger.add(bug))
    told = person.tries(app, "claim", "--agent", "otter")
    assert told.returncode == 1
    assert "halted" in told.stderr
    away = "postgresql://me@127.0.0.1:1/x?connect_timeout=1"
    told = person.tries(app, "claim", "--agent", "otter", HERDBOOK_RECORD=away)
    assert told.returncode == 0
    assert "the record cannot be asked" in told.stderr


def test_agents_ask_and_answer(person: Person, app: Path) -> None:
    """One asks and waits, the other listens and answers, in two terminals."""
    for name in ("otter", "lynx"):
        person.runs(app, "agent", "add", name)
    asking = subprocess.Popen(
        [PROGRAM, "conversation", "add", "which port?", "--to", "lynx", "--wait", "60s", "--json"],
        cwd=app,
        env={**person.variables, "HERDBOOK_AGENT": "otter"},
        stdout=subprocess.PIPE,
        text=True,
    )
    question = person.asks(app, "conversation", "listen", "--wait", "60s", HERDBOOK_AGENT="lynx")
    assert question["question"] == "which port?"
    person.runs(app, "conversation", "answer", question["id"], "8080")
    told, _ = asking.communicate(timeout=60)
    assert json.loads(told)["answer"] == "8080"
    assert person.asks(app, "conversation", "listen", HERDBOOK_AGENT="lynx") is None


def test_a_crashed_agent_is_found(person: Person, app: Path) -> None:
    """Its process is gone, so its task is free again."""
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    person.runs(app, "agent", "add", "otter", "--pid", str(process.pid))
    task = added(person, app, "task", "add", "parse")["id"]
    person.runs(app, "claim", "--agent", "otter", "--ttl", "1h")
    assert person.asks(app, "agent", "crashed") == []
    process.kill()
    process.wait()
    (crashed,) = person.asks(app, "agent", "crashed")
    assert (crashed["name"], crashed["status"]) == ("otter", "crashed")
    assert [row["id"] for row in person.asks(app, "ready")] == [task]
