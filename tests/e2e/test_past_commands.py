"""The plan as it was: `--at` on the command line and over the wires, and `diff`."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from herdbook.entrypoints.client import Client
from tests.e2e.conftest import Person
from tests.e2e.mcp_desk import desk

PASSING = {"now", "as_of", "lease_until", "lease_seconds", "seconds"}
"""What is another moment's, or not known later."""


def without_moments(answer: Any) -> Any:
    """An answer without what cannot be the same when it is asked for later."""
    if isinstance(answer, dict):
        return {n: without_moments(each) for n, each in answer.items() if n not in PASSING}
    return [without_moments(each) for each in answer] if isinstance(answer, list) else answer


QUESTIONS = (
    ("board",),
    ("status",),
    ("plan",),
    ("task", "list"),
    ("phase", "list"),
    ("agent", "list"),
    ("ready",),
    ("agent", "waiting"),
    ("message", "inbox"),
    ("status", "--line"),
    ("export", "plan"),
    ("search", "keys"),
)


def ask_all(person: Person, app: Path, *more: str) -> list[Any]:
    """The answers to every question."""
    return [without_moments(person.asks(app, *words, *more)) for words in QUESTIONS]


@pytest.mark.parametrize("engine", ["lmdb", "duckdb", "postgres"])
def test_every_command_shows_what_it_showed(
    person: Person, app: Path, postgres_url: str, engine: str
) -> None:
    """After each step, and again after all of them, by number and by time."""
    person.chooses(postgres_url if engine == "postgres" else engine)
    steps = (
        ("initiative", "add", "Ship the login"),
        ("phase", "add", "Schema", "--initiative", "Ship the login", "--status", "approved"),
        ("task", "add", "Choose the keys", "--phase", "Schema"),
        ("task", "add", "Index sessions", "--phase", "Schema", "--after", "Choose the keys"),
        ("agent", "add", "calm-lynx"),
        ("task", "add", "Write the docs", "--phase", "Schema"),
        ("claim", "--agent", "calm-lynx"),
        ("message", "add", "may I merge?", "--agent", "calm-lynx"),
        ("done", "--agent", "calm-lynx", "--summary", "hashed"),
        ("task", "set", "Index sessions", "--name", "Index all sessions"),
        ("task", "rm", "Choose the keys", "--yes"),
        ("agent", "rm", "calm-lynx", "--yes"),
    )
    then: dict[int, tuple[str, list[Any]]] = {}
    for number, words in enumerate(steps):
        person.runs(app, *words)
        if number % 3 == 0 or number == len(steps) - 1:
            seen = datetime.now(UTC).isoformat()
            then[seq_of(person, app)] = seen, ask_all(person, app)
    for seq, (seen, answers) in then.items():
        assert ask_all(person, app, "--at", str(seq)) == answers
        assert without_moments(person.asks(app, "board", "--at", seen)) == answers[0]
    held = next(
        seq for seq, (_, answers) in then.items() if answers[1]["spaces"][0]["tasks"]["held"]
    )
    shown = person.asks(app, "task", "show", "Choose the keys", "--at", str(held))
    assert (shown["status"], shown["holder"], shown["lease_until"]) == (
        "in_progress",
        "calm-lynx",
        None,
    )
    assert shown["as_of"]["seq"] == held
    assert "leases" in shown["as_of"]["not_known"]
    told = person.tries(app, "board", "--at", str(held))
    assert "calm-lynx, lease not known" in told.stdout
    assert f"as of #{held}, " in told.stderr
    assert "not known then: leases, reviewers, logs, processes" in told.stderr
    first, *_, last = then
    answer = person.asks(app, "diff", str(first))
    assert answer["until"]["seq"] == last
    tasks = [each for each in answer["rows"] if each["entity"] == "tasks"]
    assert [(each["change"], each["name"]) for each in tasks] == [
        ("added", "Index all sessions"),
        ("added", "Write the docs"),
    ]
    assert not [each for each in answer["rows"] if each["entity"] == "agents"]
    text = person.runs(app, "diff", str(held), str(last))
    assert "  - " in text
    assert "      name: Index sessions → Index all sessions" in text
    assert "  ~ " in text


def seq_of(person: Person, app: Path) -> int:
    """The number of the last change."""
    return int(person.asks(app, "board")["seq"])


def test_what_is_no_position_is_refused_every_time(person: Person, app: Path) -> None:
    """With a reason, a code and nothing written; twice, as a script would try it again."""
    person.runs(app, "task", "add", "one")
    person.runs(app, "task", "add", "two")
    last = seq_of(person, app)
    wrong = {
        ("board", "--at", "seven"): "is not the number of a journal entry, or a time",
        ("board", "--at", "-1"): "at",
        ("board", "--at", str(last + 1)): f"is #{last + 1}, and the last entry is #{last}",
        ("board", "--at", "9" * 40): "no journal has an entry with a number of 40 digits",
        ("status", "--at", "2999-01-01T00:00Z"): "which is after",
        ("status", "--at", "2026-01-01T00:00"): "has no time zone",
        ("status", "--all", "--at", "1"): "needs a time",
        ("board", "--watch", "--at", "1"): "cannot be combined with at",
        ("task", "show", "two", "--at", str(last - 1)): "no task 'two'",
        ("diff",): "SINCE",
        ("diff", "2", "1"): "#1 comes before #2",
        ("diff", str(last + 5)): f"since: is #{last + 5}, and the last entry is #{last}",
        ("diff", "1", str(last + 5)): f"until: is #{last + 5}, and the last entry is #{last}",
        ("diff", "1", "2999-01-01T00:00Z"): "until: is 2999",
        ("task", "add", "three", "--at", "1"): "at",
        ("log", "sessions", "--at", "1"): "at",
    }
    for _ in range(2):
        for words, reason in wrong.items():
            told = person.tries(app, *words)
            assert told.returncode in (2, 3), words
            assert reason in told.stderr, (words, told.stderr)
            assert "Traceback" not in told.stderr
    assert seq_of(person, app) == last


def test_a_folded_position_is_refused_with_the_beginning(person: Person, app: Path) -> None:
    """What is still there can be read, the state at the fold too."""
    for name in "abcd":
        person.runs(app, "task", "add", name)
    last = seq_of(person, app)
    person.runs(app, "journal", "prune", "--before", str(last))
    told = person.tries(app, "board", "--at", "1", "--json")
    assert told.returncode != 0
    assert f"begins at #{last}" in json.loads(told.stderr)["error"]["message"]
    names = [each["name"] for each in person.asks(app, "task", "list", "--at", str(last - 1))]
    assert sorted(names) == ["a", "b", "c"]
    assert person.tries(app, "diff", "1").returncode != 0
    assert person.asks(app, "diff", str(last - 1))["added"] == 1


def test_programs_and_models_read_the_past_too(person: Person, app: Path) -> None:
    """Over JSON-RPC every method that reads, and the tools that show a task and the status."""
    key = person.asks(app, "task", "add", "one")["id"]
    seq = seq_of(person, app)
    person.runs(app, "task", "set", "one", "--name", "renamed")
    with Client.spawn(app, variables=person.variables) as herd:
        assert herd.call("task.show", id=key, at=seq)["name"] == "one"
        assert herd.call("task.list", at=str(seq))[0]["name"] == "one"
        assert herd.call("task.order", at=seq)[0]["name"] == "one"
        assert herd.call("board", at=seq)["as_of"]["seq"] == seq
        (row,) = herd.call("diff", since=seq)["rows"]
        assert row["fields"][0] | {"before_name": 0, "after_name": 0} == {
            "field": "name",
            "before": "one",
            "after": "renamed",
            "before_name": 0,
            "after_name": 0,
        }
    with desk(person, app) as agent:
        assert agent.does("show_task", task=key, at=seq)["name"] == "one"
        assert agent.does("show_task", task=key)["name"] == "renamed"
        assert agent.does("status", at=str(seq))["spaces"][0]["as_of"]["seq"] == seq
