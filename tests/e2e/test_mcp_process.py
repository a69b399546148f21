"""The life and death of the process `herdbook mcp`, and what comes out of its pipes."""

import json
import os
import signal
from pathlib import Path

import pytest

from herdbook.entrypoints.mcp.tools import SETS
from tests.e2e.conftest import PROGRAM, Person
from tests.e2e.mcp_desk import Pipes, desk, planned, told
from tests.tokens import estimate_tokens


def test_a_client_that_leaves_while_it_waits_is_not_waited_for(person: Person, app: Path) -> None:
    """The server ends well long before the wait would, and its agent has stopped."""
    pipes = Pipes(person, app)
    pipes.calls("introduce", 1, name="leaver")
    assert pipes.answer()["id"] == 1
    pipes.calls("listen", 2, wait="10m")
    pipes.calls("status", 3)
    assert pipes.answer()["id"] == 3
    out, _ = pipes.ends()
    assert pipes.process.returncode == 0
    assert all(json.loads(line) for line in out.splitlines())
    assert person.asks(app, "agent", "show", "leaver")["status"] == "stopped"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_client_may_end_the_server_by_a_signal(
    person: Person, app: Path, number: signal.Signals
) -> None:
    """It ends while the pipe is still open and somebody waits, and its agent has stopped."""
    pipes = Pipes(person, app)
    name = f"victim-of-{number.name.lower()}"
    pipes.calls("introduce", 1, name=name)
    assert pipes.answer()["id"] == 1
    pipes.calls("listen", 2, wait="10m")
    pipes.process.send_signal(number)
    assert pipes.process.wait(timeout=120) == 128 + number
    pipes.ends()
    assert person.asks(app, "agent", "show", name)["status"] == "stopped"


def test_an_agent_is_of_the_provider_its_client_tells(person: Person, app: Path) -> None:
    """Unless it says itself whose it is."""
    pipes = Pipes(person, app, client="codex-mcp-client")
    pipes.calls("introduce", 1, name="otter")
    pipes.calls("introduce", 2, name="lynx", provider="somebody")
    answers = [pipes.answer()["result"]["structuredContent"] for _ in range(2)]
    pipes.ends()
    found = {each["name"]: each["provider"] for each in answers}
    assert found == {"otter": "codex", "lynx": "somebody"}


def test_who_has_ended_comes_back_before_writing(person: Person, app: Path) -> None:
    """Also in the session it had: it is the same agent again once it has introduced itself."""
    with desk(person, app, CLAUDE_CODE_SESSION_ID="s-7") as sat:
        first = sat.does("introduce")
    with desk(person, app, CLAUDE_CODE_SESSION_ID="s-7") as sat:
        assert f"you were {first['name']!r}, who has ended" in told(sat.tries("claim"))
        again = sat.does("introduce")
        assert (again["id"], again["status"]) == (first["id"], "idle")
        sat.does("message", content="I am back")


def test_what_a_client_began_before_it_left_is_done(person: Person, app: Path) -> None:
    """Whether or not it could still hear of it."""
    pipes = Pipes(person, app)
    pipes.calls("introduce", 1, name="hasty")
    assert pipes.answer()["id"] == 1
    pipes.calls("message", 2, content="the last word")
    pipes.ends()
    assert pipes.process.returncode == 0
    said = [each["content"] for each in person.asks(app, "message", "inbox")]
    assert "the last word" in said


def test_an_agent_whose_process_was_killed_comes_back_at_once(person: Person, app: Path) -> None:
    """Under its name; what it held is free again."""
    goal, _, (task,) = planned(person, app, "survive", "one")
    pipes = Pipes(person, app)
    pipes.calls("introduce", 1, name="phoenix")
    pipes.answer()
    pipes.calls("claim", 2, initiative=goal)
    assert pipes.answer()["result"]["structuredContent"]["task"]["id"] == task
    os.kill(pipes.process.pid, signal.SIGKILL)
    pipes.ends()
    with desk(person, app) as sat:
        assert sat.does("introduce", name="phoenix")["status"] == "idle"
        assert sat.does("claim", initiative=goal)["task"]["id"] == task


NOISE = """
import os, sys

def shout(event, arguments):
    server = "herdbook.entrypoints.mcp.server"
    if event == "subprocess.Popen" or (event == "import" and arguments[0] == server):
        print("noise", flush=True)
        os.write(1, b"noise\\n")
        if event == "import":
            os.system("echo noise")

if sys.argv[1:2] == ["mcp"]:
    sys.addaudithook(shout)
"""


def test_whatever_prints_standard_output_is_protocol_only(
    person: Person, app: Path, tmp_path: Path
) -> None:
    """What libraries and other programs say while it starts and works goes to standard error."""
    (tmp_path / "sitecustomize.py").write_text(NOISE)
    pipes = Pipes(person, app, PYTHONPATH=str(tmp_path))
    for number in (1, 2, 3):
        pipes.calls("status", number)
        assert pipes.answer()["id"] == number
    out, err = pipes.ends()
    assert out == b""
    assert err.count(b"noise") >= 3
    assert pipes.process.returncode == 0


def test_a_broken_line_ends_nothing(person: Person, app: Path) -> None:
    """The next message is answered."""
    pipes = Pipes(person, app)
    assert pipes.process.stdin is not None
    pipes.process.stdin.write(b'{"jsonrpc": \xff\n[]\nnull\n{"id": 1}\n')
    pipes.calls("ready", 2)
    while (answer := pipes.answer()).get("id") != 2:
        assert "error" in answer
    assert answer["result"]["isError"] is False
    pipes.ends()
    assert pipes.process.returncode == 0


def test_answers_are_lean_and_the_list_is_small_unless_asked_otherwise(
    person: Person, app: Path
) -> None:
    """No schema of answers, no structured copy and no empty field."""
    person.runs(app, "task", "add", "one")
    sizes = {}
    for sets in ("all", "core"):
        command = (str(PROGRAM), "mcp", "--tools", sets)
        with desk(person, app, command=command) as sat:
            listed = sat.portal.call(sat.client.list_tools)
            assert all(each.output_schema is None for each in listed.tools)
            assert [each.name for each in listed.tools] == list(SETS[sets])
            sizes[sets] = len(listed.model_dump_json(by_alias=True, exclude_none=True))
            assert sat.tries("introduce", name=f"{sets}-otter").structured_content is None
            given = [
                {"name": each.name, "description": each.description, "input": each.input_schema}
                for each in listed.tools
            ]
            if sets == "core":
                assert estimate_tokens(json.dumps(given, separators=(",", ":"))) <= 1_700
                claimed = json.loads(told(sat.tries("claim")))
                assert claimed["task"]["name"] == "one"
                assert "version" not in claimed["task"]
                assert "null" not in json.dumps(claimed)
    assert sizes["all"] <= 18_000
    assert sizes["core"] < sizes["all"] / 1.8


def test_a_set_of_tools_that_there_is_not_is_refused(person: Person, app: Path) -> None:
    """With those there are, before anything is served or installed."""
    for words in (("mcp", "--tools", "corn"), ("mcp", "install", "cursor", "--tools", "corn")):
        refused = person.tries(app, *words)
        assert refused.returncode == 2
        assert "all, core" in refused.stderr
    person.runs(app, "mcp", "install", "cursor", "--tools", "core")
    assert '"--tools",' in (app / ".cursor" / "mcp.json").read_text()
    person.runs(app, "mcp", "uninstall", "cursor")
    assert not (app / ".cursor").exists()
