"""The user's own record, and the halts in it: what a repository and an agent can do to them."""

import json
from pathlib import Path

import pytest

from herdbook.adapters.repository_folder import account_name
from tests.attacks.conftest import Person

DIVERSIONS = (
    ("herdbook.toml", 'record = "leak.lmdb"'),
    ("herdbook.toml", 'record = "repo"'),
    ("herdbook.toml", 'record = "worktree"'),
    ("herdbook.toml", 'store = "leak.lmdb"'),
    ("herdbook.toml", 'store = "repo"'),
    ("herdbook.toml", 'backend = "duckdb"'),
    ("herdbook.toml", "size_limit = 1048576\npatience = 0.001"),
    ("herdbook.toml", 'size_limit = "16 GiB"'),
    ("herdbook.toml", 'record_size_limit = "1 MiB"'),
    ("herdbook.toml", "enforce_halt = false"),
    ("pyproject.toml", '[tool.herdbook]\nrecord = "leak.lmdb"'),
)


def event(person: Person, folder: Path, name: str, agent: str, session: str) -> str:
    """What the hook answers to an event of an agent's session in a folder."""
    given = json.dumps({"session_id": session, "tool_name": "Bash"})
    told = person.tries(folder, "hook", name, stdin=given, HERDBOOK_AGENT=agent)
    assert told.returncode == 0
    return told.stdout


@pytest.mark.parametrize(("name", "text"), DIVERSIONS)
@pytest.mark.parametrize("trusted", [False, True])
def test_no_repository_takes_the_record_or_lifts_a_halt(
    person: Person, app: Path, tmp_path: Path, name: str, text: str, *, trusted: bool
) -> None:
    """Events of all projects come into the user's record, wherever the flush is started."""
    person.registers(app, "otter")
    for _ in range(2):
        person.runs(app, "bug", "otter")
    assert "deny" in event(person, app, "PreToolUse", "otter", "s-1")
    event(person, app, "PostToolUse", "heron", "private-work")
    hostile = person.repository(tmp_path / "hostile")
    (hostile / name).write_text(f"{text}\n")
    if trusted:
        person.runs(hostile, "trust")
    event(person, hostile, "PostToolUse", "heron", "s-2")
    person.runs(hostile, "flush")
    standings = {each["agent"]: each for each in person.asks(app, "standing")}
    assert standings["heron"]["experience_points"] == 2
    assert not any("leak" in str(path) for path in hostile.rglob("*"))
    assert not list(hostile.rglob("record.*"))
    assert "deny" in event(person, app, "PreToolUse", "otter", "s-1")
    assert "deny" in event(person, hostile, "PreToolUse", "otter", "s-3")
    claim = person.tries(hostile, "claim", "--agent", "otter")
    assert claim.returncode != 0


def test_another_record_does_not_lift_halts(person: Person, app: Path, tmp_path: Path) -> None:
    """Only the record that set a marker takes it away."""
    person.registers(app, "otter", "heron")
    person.runs(app, "bug", "otter")
    assert "deny" in event(person, app, "PreToolUse", "otter", "s-1")
    for words in (["flush"], ["bug", "heron"], ["reinstate", "heron"]):
        person.runs(app, *words, "--record", str(tmp_path / "other.lmdb"))
        assert "deny" in event(person, app, "PreToolUse", "otter", "s-1"), words
    person.runs(app, "reinstate", "otter")
    assert event(person, app, "PreToolUse", "otter", "s-1") == ""


def test_events_are_not_flushed_into_the_void(person: Person, app: Path) -> None:
    """A record in memory would be gone with them."""
    event(person, app, "PostToolUse", "heron", "s-1")
    told = person.tries(app, "flush", HERDBOOK_RECORD="memory://")
    assert told.returncode == 2
    assert "the events wait" in told.stderr
    person.runs(app, "flush")
    assert [each["agent"] for each in person.asks(app, "standing")] == ["heron"]


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"HERDBOOK_USER": "other"}, "HERDBOOK_USER is other"),
        ({"HERDBOOK_RECORD": "memory://"}, "the record is named by HERDBOOK_RECORD"),
        ({"HERDBOOK_RECORD": "postgresql://127.0.0.1:1/x?connect_timeout=2"}, "was out of reach"),
    ],
)
def test_ways_round_a_halt_are_noted_in_the_journal_and_shown(
    person: Person, app: Path, variables: dict[str, str], said: str
) -> None:
    """An agent with a shell can leave the record it is halted in; that is seen."""
    person.runs(app, "agent", "add", "otter")
    person.runs(app, "task", "add", "one")
    person.runs(app, "bug", "otter")
    assert "is halted" in person.tries(app, "claim", "--agent", "otter").stderr
    person.runs(app, "claim", "--agent", "otter", **variables)
    entries = [json.loads(line) for line in person.runs(app, "journal", "--json").splitlines()]
    assert any(said in (each["note"] or "") for each in entries if each["entity"] == "tasks")
    assert said in person.runs(app, "status")
    assert any(
        said in str(each["note"]) for each in person.asks(app, "status")["spaces"][0]["noted"]
    )


@pytest.mark.parametrize(
    "variables", [{"LOGNAME": "x"}, {"USER": "y"}, {"LOGNAME": "", "USER": ""}]
)
def test_one_account_is_one_person(person: Person, app: Path, variables: dict[str, str]) -> None:
    """Whatever variables a host starts its programs with: the account counts."""
    person.registers(app, "otter")
    person.runs(app, "bug", "otter")
    where = person.asks(app, "where", **variables)
    assert where["areas"]["record"]["space"] == f"record/{account_name()}"
    assert [each["agent"] for each in person.asks(app, "standing", **variables)] == ["otter"]
