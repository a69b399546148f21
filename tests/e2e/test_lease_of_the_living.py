"""A lease lasts as long as its agent works: by its server, by its hooks, and not after a kill."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from herdbook.entrypoints.hooks.hosts import local_command
from tests.e2e.conftest import Person
from tests.e2e.mcp_desk import Pipes as McpPipes
from tests.e2e.mcp_desk import desk
from tests.e2e.mcp_desk import told as said
from tests.e2e.rpc_process import Pipes, until

SHORT = "2s"
PAUSE = 0.25
"""How many seconds a test waits before it runs the same commands again."""
STOP = "Stop working on this task; heron holds it since"


@pytest.fixture(params=["lmdb", "duckdb", "postgres"])
def crew(request: pytest.FixtureRequest, person: Person, app: Path) -> Path:
    """A repository with a task and two agents, on each engine that processes share."""
    backend = request.param
    url = request.getfixturevalue("postgres_url") if backend == "postgres" else backend
    person.chooses(url)
    person.registers(app, "otter", "heron")
    person.runs(app, "task", "add", "an idea")
    return app


def _claims(person: Person, folder: Path, agent: str, *words: str) -> bool:
    """Let an agent claim with the installed program; whether it got the task."""
    told = person.tries(folder, "claim", *words, "--json", HERDBOOK_AGENT=agent)
    assert told.returncode == 0, told.stderr
    return "task" in json.loads(told.stdout)


def _lease_end(person: Person, folder: Path) -> str:
    """When the one lease ends, as `status` shows it."""
    (space,) = person.asks(folder, "status")["spaces"]
    ends = [str(row["lease_until"]) for row in space["rows"] if row["lease_until"]]
    return ends[0] if ends else ""


def _holders(person: Person, folder: Path) -> list[str]:
    """Who works on a task, by the tasks themselves."""
    names = {each["id"]: each["name"] for each in person.asks(folder, "agent", "list")}
    held = person.asks(folder, "task", "list", "--status", "in_progress")
    return [names[each["assignee_id"]] for each in held]


def _hook(person: Person, folder: Path, event: str, **variables: str) -> str:
    """What a host gets from the hook that it starts for an event."""
    return subprocess.run(
        local_command(event).split(),
        cwd=folder,
        env={**person.variables, **variables},
        input=json.dumps({"session_id": "of-the-host", "tool_name": "Bash"}),
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def _gets_it(person: Person, folder: Path) -> Callable[[], bool]:
    """Whether the other agent gets the task now; nobody else holds it then."""

    def try_it() -> bool:
        has_claimed = _claims(person, folder, "heron")
        assert _holders(person, folder) == ["heron" if has_claimed else "otter"]
        return has_claimed

    return try_it


def test_a_server_renews_what_its_client_holds(person: Person, crew: Path) -> None:
    """For longer than the lease, without a call; after the client has left, the lease runs out."""
    with desk(person, crew, HERDBOOK_AGENT="otter") as sat:
        first = sat.does("claim", ttl=SHORT)["lease_until"]
        until(lambda: _lease_end(person, crew) > first, PAUSE)
        renewed = _lease_end(person, crew)
        until(lambda: _lease_end(person, crew) > renewed, PAUSE)
        assert not _gets_it(person, crew)()
    until(_gets_it(person, crew), PAUSE)


def test_the_lease_of_a_killed_server_runs_out(person: Person, crew: Path) -> None:
    """Nobody is there to record its end, and its agent has no process that is known."""
    server = McpPipes(person, crew, HERDBOOK_AGENT="otter")
    server.calls("claim", 1, ttl=SHORT)
    assert not server.answer()["result"]["isError"]
    first = _lease_end(person, crew)
    until(lambda: _lease_end(person, crew) > first, PAUSE)
    os.kill(server.process.pid, signal.SIGKILL)
    server.ends()
    until(_gets_it(person, crew), PAUSE)


def test_the_task_of_a_killed_agent_is_given_out_at_once(person: Person, crew: Path) -> None:
    """Its lease would last for long, but its process is gone: `claim` finds that out."""
    server = McpPipes(person, crew)
    server.calls("introduce", 1, name="lynx")
    server.answer()
    server.calls("claim", 2, ttl="1h")
    assert not server.answer()["result"]["isError"]
    assert not _claims(person, crew, "heron")
    os.kill(server.process.pid, signal.SIGKILL)
    server.ends()
    assert _claims(person, crew, "heron")
    (lynx,) = [each for each in person.asks(crew, "agent", "list") if each["name"] == "lynx"]
    assert lynx["status"] == "crashed"


@pytest.mark.parametrize("command", ["status", "board"])
def test_whoever_looks_learns_that_an_agent_was_killed(
    person: Person, app: Path, command: str
) -> None:
    """`status` and `board` look at the processes of this host, and say so in the journal."""
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as process:
        person.runs(app, "agent", "add", "otter", "--pid", str(process.pid))
        person.runs(app, "task", "add", "an idea")
        person.runs(app, "claim", "--agent", "otter")
        person.runs(app, command)
        assert person.asks(app, "agent", "show", "otter")["status"] == "running"
        process.kill()
    told = person.tries(app, command)
    assert told.returncode == 0
    assert person.asks(app, "agent", "show", "otter")["status"] == "crashed"
    assert len(person.asks(app, "ready")) == 1


@contextmanager
def _at_work(person: Person, folder: Path, **variables: str) -> Iterator[None]:
    """Use a tool again and again meanwhile, as hooks report it."""
    over = threading.Event()

    def use_tools() -> None:
        while not over.wait(0.5):
            _hook(person, folder, "PostToolUse", **variables)

    worker = threading.Thread(target=use_tools)
    worker.start()
    try:
        yield
    finally:
        over.set()
        worker.join()


@pytest.mark.parametrize("by", ["name", "session"])
def test_whoever_uses_tools_keeps_its_task(person: Person, crew: Path, by: str) -> None:
    """For longer than its lease, also if a flush takes the events away; silent, it loses it."""
    who = {"HERDBOOK_AGENT": "otter"}
    if by == "session":
        person.runs(crew, "agent", "set", "otter", "--session-id", "of-the-host")
        who = {}
    with _at_work(person, crew, **who):
        assert _claims(person, crew, "otter", "--ttl", "4s")
        end = time.monotonic() + 10
        while time.monotonic() < end:
            assert not _claims(person, crew, "heron")
            person.runs(crew, "flush")
            time.sleep(PAUSE)
        assert _holders(person, crew) == ["otter"]
    until(_gets_it(person, crew), PAUSE)
    lost = person.tries(crew, "done", HERDBOOK_AGENT="otter")
    assert (lost.returncode, STOP in lost.stderr) == (4, True)


def test_the_end_of_a_session_ends_its_lease(person: Person, app: Path) -> None:
    """The flush that the hook starts then lets others have the task, long before it is over."""
    person.registers(app, "heron")
    person.runs(app, "agent", "add", "otter", "--session", "of-the-host")
    person.runs(app, "task", "add", "an idea")
    assert _claims(person, app, "otter")
    _hook(person, app, "PostToolUse")
    assert not _gets_it(person, app)()
    _hook(person, app, "SessionEnd")
    until(_gets_it(person, app), PAUSE)


@pytest.fixture
def lost(person: Person, app: Path) -> str:
    """A task that one agent lost to another; its id."""
    person.registers(app, "otter", "heron")
    person.runs(app, "task", "add", "an idea")
    person.runs(app, "claim", "--agent", "otter", "--ttl", "0.01s")
    taken: dict[str, Any] = person.asks(app, "claim", "--agent", "heron")
    return str(taken["task"]["id"])


def test_a_lost_lease_is_told_alike_everywhere(person: Person, app: Path, lost: str) -> None:
    """With or without the task and its fence: exit code 4, StaleFence, who holds it since when."""
    named: list[dict[str, Any]] = [{}, {"task": lost}, {"task": lost, "fence": 1}]
    calls = [(verb, each) for verb in ("done", "heartbeat", "fail", "release") for each in named]
    for verb, params in calls:
        fence = ["--fence", "1"] if "fence" in params else []
        words = ["task", verb, *([lost] if params else []), *fence, "--json"]
        told = person.tries(app, *words, HERDBOOK_AGENT="otter")
        error = json.loads(told.stderr)["error"]
        assert (told.returncode, error["type"], error["holder"]) == (4, "StaleFence", "heron")
        assert STOP in error["message"]
        assert "`herdbook claim` takes another" in error["message"]
    with Pipes(person, app, HERDBOOK_AGENT="otter") as pipes:
        for verb, params in calls:
            error = pipes.call(f"task.{verb}", **params)
            assert (error["code"], error["data"]["type"]) == (4003, "StaleFence")
            assert STOP in error["message"]
    with desk(person, app, HERDBOOK_AGENT="otter") as sat:
        for verb, params in calls:
            tool = "complete" if verb == "done" else verb
            more = {"summary": "it is done"} if verb == "done" else {}
            answer = sat.tries(tool, **params, **more)
            assert answer.is_error
            assert said(answer).startswith("StaleFence: ")
            assert STOP in said(answer)


def test_the_next_tool_of_the_loser_is_denied_once(person: Person, app: Path, lost: str) -> None:
    """With the reason; then it may claim another task. Others are not bothered."""
    assert lost
    assert _hook(person, app, "PreToolUse", HERDBOOK_AGENT="heron") == ""
    denied = json.loads(_hook(person, app, "PreToolUse", HERDBOOK_AGENT="otter"))
    decision = denied["hookSpecificOutput"]
    assert decision["permissionDecision"] == "deny"
    assert STOP in decision["permissionDecisionReason"]
    assert _hook(person, app, "PreToolUse", HERDBOOK_AGENT="otter") == ""


def test_who_has_claimed_another_task_is_not_told(person: Person, app: Path, lost: str) -> None:
    """It knows already."""
    assert lost
    person.runs(app, "task", "add", "another")
    person.runs(app, "claim", "--agent", "otter")
    assert _hook(person, app, "PreToolUse", HERDBOOK_AGENT="otter") == ""


def test_who_waits_for_an_answer_keeps_its_task(person: Person, app: Path) -> None:
    """A command that waits renews the lease; without an answer it says so, and ends with 1."""
    person.registers(app, "otter", "heron")
    person.runs(app, "task", "add", "an idea")
    assert _claims(person, app, "otter", "--ttl", SHORT)
    waits = ("conversation", "add", "which port?", "--to", "heron", "--wait", "5s")
    told = person.tries(app, *waits, HERDBOOK_AGENT="otter")
    assert (told.returncode, "there is no answer yet" in told.stderr) == (1, True)
    assert json.loads(person.tries(app, *waits, "--json", HERDBOOK_AGENT="otter").stdout)["id"]
    assert not _gets_it(person, app)()


def test_a_claim_lasts_half_an_hour_by_default(person: Person, app: Path) -> None:
    """From the command line and over JSON-RPC."""
    person.registers(app, "otter")
    for name in ("one", "two"):
        person.runs(app, "task", "add", name)
    claimed = person.asks(app, "claim", "--agent", "otter")
    with Pipes(person, app) as pipes:
        again = pipes.call("task.claim", agent="otter")
    for each in (claimed, again):
        minutes = _minutes(each["task"]["updated_at"], each["lease_until"])
        assert round(minutes) == 30


def _minutes(since: str, end: str) -> float:
    return (datetime.fromisoformat(end) - datetime.fromisoformat(since)).total_seconds() / 60
