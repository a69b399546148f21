"""Agents in context: what they are at, what they run on and how they come back, by every way in."""

import json
import os
import shlex
from pathlib import Path
from typing import Any

import pytest

from herdbook.domain.agents.model import WaitingAgent
from herdbook.domain.errors import StaleWrite
from herdbook.entrypoints.client import Client
from tests.e2e.conftest import Person
from tests.e2e.mcp_desk import desk

CONTEXT = {
    "task_name": "parse",
    "task_description": "all of it",
    "phase_name": "first",
    "initiative_name": "User auth",
}


def test_what_waiting_prints_answers_the_question_that_was_read_and_no_other(
    person: Person, app: Path
) -> None:
    """The same by JSON-RPC; without the number, whatever it asks is answered."""
    person.registers(app, "fox")
    asking = ("agent", "wait", "fox", "--questions")
    person.runs(app, *asking, '[{"question": "Merge?", "options": ["Yes, do"]}]')
    shown = person.runs(app, "waiting")
    (line,) = [each for each in shown.splitlines() if "Yes, do" in each]
    command = shlex.split(line)[1:]
    person.runs(app, *asking, '[{"question": "Drop it?", "options": ["Yes, do"]}]')
    refused = person.tries(app, *command)
    assert (refused.returncode, "Nothing was sent" in refused.stderr) == (4, True)
    (entry,) = person.asks(app, "waiting")
    stale = {**entry["actions"][0]["params"], "asked": entry["asked"] - 1}
    with Client.spawn(app, variables=person.variables) as herd:
        with pytest.raises(StaleWrite, match="Nothing was sent"):
            herd.call("agent.answer", **stale)
        assert herd.call("message.list") == []
        herd.call("agent.answer", **entry["actions"][0]["params"])
    assert person.runs(app, "waiting").strip() == "nothing waits for you"


@pytest.fixture
def plan(person: Person, app: Path) -> dict[str, Any]:
    """An initiative with reviews, one open phase and one task in it."""
    initiative = person.asks(app, "initiative", "add", "User auth", "--quality-review", "yes")
    place = ("--initiative", initiative["id"], "--status", "approved")
    phase = person.asks(app, "phase", "add", "first", *place)
    words = ("task", "add", "parse", "--phase", phase["id"], "--description", "all of it")
    return {"initiative": initiative, "phase": phase, "task": person.asks(app, *words)}


def _agent(person: Person, app: Path, name: str) -> dict[str, Any]:
    agent: dict[str, Any] = person.asks(app, "agent", "show", name)
    return agent


def _names(rows: list[dict[str, Any]]) -> list[str]:
    return [each["name"] for each in rows]


def test_a_waiting_agent_is_told_with_its_task_by_every_way_in(
    person: Person, app: Path, plan: dict[str, Any]
) -> None:
    """From its claim alone: nobody has set its task."""
    person.runs(app, "agent", "add", "fox")
    person.runs(app, "claim", HERDBOOK_AGENT="fox")
    person.runs(app, "agent", "wait", "--agent", "fox", "--questions", '["which port?"]')
    (told,) = person.asks(app, "agent", "waiting")
    assert {name: told[name] for name in CONTEXT} == CONTEXT
    assert told["pending_questions"] == ["which port?"]
    screen = person.runs(app, "agent", "waiting")
    assert all(word in screen for word in ("User auth", "first", "parse", "which port?"))
    with Client.spawn(app, variables=person.variables) as herd:
        (row,) = herd.many(WaitingAgent, "agent.waiting")
        described = herd.call("rpc.discover")
    assert {name: getattr(row, name) for name in CONTEXT} == CONTEXT
    (method,) = [each for each in described["methods"] if each["name"] == "agent.waiting"]
    schema = {"$ref": "#/components/schemas/WaitingAgent"}
    assert method["result"]["schema"] == {"type": "array", "items": schema}
    fields = described["components"]["schemas"]["WaitingAgent"]["properties"]
    assert CONTEXT.keys() <= fields.keys()
    assert plan["task"]["id"] == told["task_id"]


def test_a_reviewer_is_at_the_review_and_the_author_no_longer(
    person: Person, app: Path, plan: dict[str, Any]
) -> None:
    """From claim to hand-in to review, in the row, in the lists and on the screen of all."""
    task, initiative = plan["task"]["id"], plan["initiative"]["id"]
    for name in ("hen", "dog"):
        assert person.asks(app, "agent", "add", name)["status"] == "idle"
    person.runs(app, "claim", HERDBOOK_AGENT="hen")
    hen = _agent(person, app, "hen")
    assert (hen["status"], hen["task_id"], hen["initiative_id"]) == ("running", task, initiative)
    assert _names(person.asks(app, "agent", "list", "--task", task)) == ["hen"]
    assert _names(person.asks(app, "agent", "list", "--initiative", initiative)) == ["hen"]
    person.runs(app, "done", HERDBOOK_AGENT="hen")
    assert (_agent(person, app, "hen")["status"], _agent(person, app, "hen")["task_id"]) == (
        "idle",
        None,
    )
    fence = person.asks(app, "claim", HERDBOOK_AGENT="dog")["fence"]
    assert _names(person.asks(app, "agent", "list", "--task", task)) == ["dog"]
    (space,) = person.asks(app, "status")["spaces"]
    rows = {each["agent"]: each["task"] for each in space["rows"]}
    assert (rows["hen"], rows["dog"]) == (None, "parse")
    person.runs(app, "agent", "wait", "--agent", "dog")
    (waiting,) = person.asks(app, "agent", "waiting")
    assert (waiting["name"], waiting["task_name"]) == ("dog", "parse")
    person.runs(app, "done", task, "--fence", str(fence), HERDBOOK_AGENT="dog")
    assert _agent(person, app, "dog")["task_id"] is None
    assert person.asks(app, "agent", "list", "--task", task) == []


def test_an_agent_is_started_for_a_task_and_an_account(
    person: Person, app: Path, plan: dict[str, Any]
) -> None:
    """Beginnings of ids are enough; what is not there is refused, and nothing is written."""
    told = person.tries(app, "account", "add", "a@b", "--credentials", "-", stdin="secret")
    assert told.returncode == 0
    (account,) = person.asks(app, "account", "list")
    short = account["id"][:12]
    words = ["--task", plan["task"]["id"][:12], "--initiative", plan["initiative"]["id"][:12]]
    words += ["--account", short, "--output-file-path", "out.txt"]
    yak = person.asks(app, "agent", "add", "yak", *words)
    assert (yak["task_id"], yak["account_id"]) == (plan["task"]["id"], account["id"])
    assert (yak["initiative_id"], yak["status"]) == (plan["initiative"]["id"], "running")
    assert yak["output_file_path"] == "out.txt"
    assert _names(person.asks(app, "agent", "list", "--account", short)) == ["yak"]
    with Client.spawn(app, variables=person.variables) as herd:
        made = herd.call("agent.add", name="emu", account=short, output_file_path="emu.txt")
        assert (made["account_id"], made["output_file_path"]) == (account["id"], "emu.txt")
    for refused in (
        ("agent", "add", "owl", "--account", "acc_nonsense"),
        ("agent", "set", "yak", "--account", "acc_nonsense"),
    ):
        answer = person.tries(app, *refused)
        assert (answer.returncode, "there is no account" in answer.stderr) == (3, True)
    assert sorted(_names(person.asks(app, "agent", "list"))) == ["emu", "yak"]


def test_an_account_that_an_agent_takes_is_noted_and_forgotten_with_it(
    person: Person, app: Path
) -> None:
    """And `check` tells of an agent whose account went where nobody looked."""
    for email in ("a@b", "c@d"):
        person.tries(app, "account", "add", email, "--credentials", "-", stdin="secret")
    for name in ("kit", "fox"):
        person.runs(app, "agent", "add", name)
        person.runs(app, "account", "take", HERDBOOK_AGENT=name)
    kit, fox = (_agent(person, app, each)["account_id"] for each in ("kit", "fox"))
    assert {kit, fox} == {each["id"] for each in person.asks(app, "account", "list")}
    person.runs(app, "account", "rm", kit)
    assert _agent(person, app, "kit")["account_id"] is None
    assert person.asks(app, "check")["ok"] is True
    elsewhere = app.parent / "elsewhere"
    elsewhere.mkdir()
    person.runs(elsewhere, "account", "rm", fox)
    told = json.loads(person.tries(app, "check", "--json", "--full").stdout)
    (flaw,) = [each for store in told["stores"] for each in store["flaws"]]
    assert (told["ok"], flaw["entity"]) == (False, "agents")
    assert fox in flaw["what"]
    person.runs(app, "check", "--repair")
    assert _agent(person, app, "fox")["account_id"] is None
    assert person.asks(app, "check")["ok"] is True


def test_who_comes_back_keeps_what_is_not_said_again(person: Person, app: Path) -> None:
    """Without what it left when it ended, and in the next session of its log."""
    person.runs(app, "agent", "add", "cod", "--provider", "codex", "--mode", "plan")
    person.runs(app, "log", "add", "one", "--agent", "cod")
    ended = ("agent", "stop", "--agent", "cod", "--exit-code", "3", "--result", '{"ok": false}')
    person.runs(app, *ended)
    cod = person.asks(app, "agent", "add", "cod")
    assert (cod["provider"], cod["mode"], cod["status"]) == ("codex", "plan", "idle")
    assert (cod["exit_code"], cod["result"]) == (None, None)
    assert person.asks(app, "log", "add", "two", "--agent", "cod")["session_number"] == 2
    person.runs(app, *ended)
    words = ("--agent", "cod", "--pid", str(os.getpid()), "--session", "s-9")
    cod = person.asks(app, "agent", "resume", *words)
    assert (cod["pid"], cod["session_id"], cod["result"]) == (os.getpid(), "s-9", None)
    assert person.asks(app, "log", "add", "three", "--agent", "cod")["session_number"] == 3
    assert person.asks(app, "log", "add", "more", "--agent", "cod")["session_number"] == 3
    with Client.spawn(app, variables=person.variables) as herd:
        herd.call("agent.stop", agent="cod")
        assert herd.call("agent.resume", agent="cod", session="s-10")["session_id"] == "s-10"
        assert herd.call("log.add", agent="cod", content="four")["session_number"] == 4


def test_an_agent_waits_for_the_person_by_a_tool(
    person: Person, app: Path, plan: dict[str, Any]
) -> None:
    """The person sees its questions with its task; it goes on when it introduces itself again."""
    with desk(person, app) as tools:
        name = tools.does("introduce", name="elk")["name"]
        tools.does("claim")
        waiting = tools.does("wait", questions=["which port?", "which host?"])
        assert waiting["status"] == "waiting_for_input"
        (told,) = person.asks(app, "agent", "waiting")
        assert (told["name"], told["task_id"]) == (name, plan["task"]["id"])
        assert told["pending_questions"] == ["which port?", "which host?"]
        assert tools.does("introduce", name="elk")["status"] == "running"
        assert person.asks(app, "agent", "waiting") == []


def test_one_standard_input_is_one_secret(person: Person, app: Path) -> None:
    """A second `-` would read an empty end; nothing is stored then, nor is nothing at all."""
    both = ("account", "add", "a@b", "--credentials", "-", "--config", "-")
    told = person.tries(app, *both, stdin='{"a": 1}')
    assert (told.returncode, "standard input" in told.stderr) == (2, True)
    told = person.tries(app, "account", "add", "a@b", "--credentials", "-", stdin="\n")
    assert (told.returncode, "is empty" in told.stderr) == (2, True)
    assert person.asks(app, "account", "list") == []


def test_an_agent_keeps_the_worktree_it_was_registered_in(person: Person, app: Path) -> None:
    """It cannot be emptied by hand; outside git there is none."""
    there = person.asks(app, "agent", "add", "hen")["worktree_id"]
    assert there is not None
    refused = person.tries(app, "agent", "set", "hen", "--clear", "worktree_id")
    assert (refused.returncode, "agent add" in refused.stderr) == (2, True)
    assert _agent(person, app, "hen")["worktree_id"] == there
