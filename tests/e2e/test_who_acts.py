"""Who acts: the agent of `--agent`, of HERDBOOK_AGENT, of the session, or else the person."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Person

WRITES = ("heartbeat", "release", "fail", "done")


def _last_entry(person: Person, folder: Path) -> dict[str, Any]:
    lines = person.runs(folder, "journal", "list", "--json").splitlines()
    entry: dict[str, Any] = json.loads(lines[-1])
    return entry


@pytest.fixture
def crew(person: Person, app: Path) -> Path:
    """Two agents in one worktree, one of them in a session, and tasks enough."""
    person.runs(app, "agent", "add", "otter", "--session", "s-1")
    person.runs(app, "agent", "add", "heron")
    for number in range(3):
        person.runs(app, "task", "add", f"task {number}")
    return app


@pytest.mark.parametrize(
    ("variables", "words", "agent"),
    [
        ({"HERDBOOK_AGENT": "otter", "HERDBOOK_SESSION": "s-1"}, ("--agent", "heron"), "heron"),
        ({"HERDBOOK_AGENT": "heron", "HERDBOOK_SESSION": "s-1"}, (), "heron"),
        ({"HERDBOOK_SESSION": "s-1"}, (), "otter"),
        ({}, ("--agent", "heron"), "heron"),
    ],
)
def test_the_journal_names_the_agent_that_acts(
    person: Person, crew: Path, variables: dict[str, str], words: tuple[str, ...], agent: str
) -> None:
    """In this order, and the claim is of the same agent."""
    claimed = person.asks(crew, "claim", *words, **variables)
    assert _last_entry(person, crew)["agent"] == agent
    assert claimed["task"]["assignee_id"] == person.asks(crew, "agent", "show", agent)["id"]


def test_nobody_acts_for_a_person_because_it_is_alone_in_the_worktree(
    person: Person, app: Path
) -> None:
    """What the person does is the person's, and a claim has to name its agent."""
    person.runs(app, "agent", "add", "otter")
    person.runs(app, "task", "add", "an idea")
    entry = _last_entry(person, app)
    assert (entry["agent"], bool(entry["person"])) == (None, True)
    told = person.tries(app, "claim")
    assert (told.returncode, "HERDBOOK_AGENT" in told.stderr) == (2, True)
    assert person.asks(app, "task", "list", "--status", "in_progress") == []


@pytest.mark.parametrize("verb", WRITES)
def test_whoever_claimed_by_its_option_goes_on_by_it(person: Person, app: Path, verb: str) -> None:
    """Without the task and without its fence; the journal has its name there too."""
    person.runs(app, "agent", "add", "otter")
    person.runs(app, "agent", "add", "heron")
    person.runs(app, "task", "add", "an idea")
    task = person.asks(app, "claim", "--agent", "otter")["task"]
    refused = person.tries(app, "task", verb, task["id"], "--agent", "heron")
    told = "Stop working on this task; otter holds it since"
    assert (refused.returncode, told in refused.stderr) == (4, True)
    person.runs(app, "task", verb, "--agent", "otter")
    if verb != "heartbeat":  # which is not in the journal
        assert _last_entry(person, app)["agent"] == "otter"
