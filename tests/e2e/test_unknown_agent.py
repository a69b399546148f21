"""A name that no agent has: nothing is written in it, and the command that registers it is told."""

import json
from pathlib import Path

import pytest

from herdbook.domain.location.areas import Area
from herdbook.entrypoints.mcp.tools import TOOLS
from tests.e2e.conftest import Person
from tests.e2e.deeds import STEPS, command_words
from tests.e2e.mcp_desk import desk, some_arguments, told
from tests.e2e.rpc_process import Pipes

GHOST = {"HERDBOOK_AGENT": "ghost"}
TOLD = "`herdbook agent add ghost` registers it"
DEEDS = [each for each in STEPS if each.operation != "agent.add"]  # which is the cure


@pytest.fixture
def manned(person: Person, app: Path) -> Path:
    """A repository with two agents that are registered."""
    person.registers(app, "otter", "lynx")
    return app


def _heads(person: Person, folder: Path) -> list[int]:
    """The last entries of the journals of the plan and of the record."""
    app = person.at(folder)
    return [app.read(area, lambda uow: uow.journal.last()) for area in (Area.WORK, Area.RECORD)]


def test_no_command_writes_as_an_agent_that_nobody_registered(person: Person, manned: Path) -> None:
    """Whichever store it would write: the plan or the user's record."""
    before = _heads(person, manned)
    missed = []
    for step in DEEDS:
        told = person.tries(manned, *command_words(step.operation, step.params), **GHOST)
        if (told.returncode, TOLD in told.stderr) != (2, True):
            missed.append((step.operation, told.returncode, told.stderr))
    assert missed == []
    assert _heads(person, manned) == before


def test_no_method_writes_as_an_agent_that_nobody_registered(person: Person, manned: Path) -> None:
    """Over JSON-RPC the same."""
    before = _heads(person, manned)
    missed = []
    with Pipes(person, manned, **GHOST) as pipes:
        for step in DEEDS:
            call = {"jsonrpc": "2.0", "id": 1, "method": step.operation, "params": step.params}
            pipes.send({**call, "params": dict(step.params)})
            answer = pipes.receive()
            if TOLD not in answer.get("error", {}).get("message", ""):
                missed.append((step.operation, answer))
    assert missed == []
    assert _heads(person, manned) == before


def test_no_tool_writes_as_an_agent_that_nobody_registered(person: Person, manned: Path) -> None:
    """Over MCP the client is told to introduce itself; then it may act."""
    before = _heads(person, manned)
    with desk(person, manned, **GHOST) as sat:
        for tool in (each for each in TOOLS if each.needs_agent and each.name != "introduce"):
            answer = sat.tries(tool.name, **some_arguments(tool))
            assert (answer.is_error, "ghost" in told(answer), "call introduce" in told(answer)) == (
                True,
                True,
                True,
            ), (tool.name, told(answer))
        assert _heads(person, manned) == before
        assert sat.does("introduce")["name"] == "ghost"


def test_an_agent_that_only_hooks_told_of_writes_in_the_record_alone(
    person: Person, manned: Path
) -> None:
    """Hooks report whoever works; that makes its name known to the record, and not to the plan."""
    event = {"session_id": "s-9", "cwd": str(manned), "tool_name": "Read", "tool_input": {}}
    person.tries(manned, "hook", "PostToolUse", stdin=json.dumps(event), **GHOST)
    person.runs(manned, "activity", "add", "read the code", **GHOST)
    person.runs(manned, "flush")
    person.runs(manned, "activity", "add", "read more", **GHOST)
    refused = person.tries(manned, "task", "add", "an idea", **GHOST)
    assert (refused.returncode, TOLD in refused.stderr) == (2, True)


@pytest.mark.parametrize("words", [("worktree", "add", "wt-a"), ("worktree", "prune")])
def test_no_worktree_is_made_in_an_unknown_name(
    person: Person, manned: Path, words: tuple[str, ...]
) -> None:
    """Nor removed."""
    refused = person.tries(manned, *words, **GHOST)
    assert (refused.returncode, TOLD in refused.stderr) == (2, True)
    assert len(person.asks(manned, "worktree", "list")["worktrees"]) == 1


@pytest.mark.parametrize("words", [("claim",), ("done",), ("activity", "add", "parse")])
def test_a_person_who_does_an_agents_deed_is_told_how_to_name_one(
    person: Person, manned: Path, words: tuple[str, ...]
) -> None:
    """With the option, the variable, and the command that registers one."""
    refused = person.tries(manned, *words)
    assert refused.returncode == 2
    assert "only an agent does this" in refused.stderr
    assert "--agent or HERDBOOK_AGENT; `herdbook agent add NAME` registers one" in refused.stderr
    refused = person.tries(manned, *words, HERDBOOK_SESSION="s-7")
    assert "`herdbook agent add` registers one for this session" in refused.stderr
