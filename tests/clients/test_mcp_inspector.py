"""The MCP Inspector's command line, which nobody here wrote, against `herdbook mcp`."""

import json
import os
import pwd
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from herdbook.entrypoints.mcp.tools import TOOLS
from tests.e2e.conftest import PROGRAM, Person

TOOL_FAILED = 5
"""What the inspector ends with when a tool has refused."""
both_eras = pytest.mark.parametrize("era", ["legacy", "modern"])


class Inspector:
    """The inspector, called once for each question; `HERDBOOK_AGENT` says who asks."""

    def __init__(self, program: Path, person: Person, folder: Path, agent: str) -> None:
        self.program = program
        self.person = person
        self.folder = folder
        self.agent = agent
        self.era = "legacy"

    def tries(
        self, *words: str, server: tuple[str, ...] = (str(PROGRAM), "mcp", "--structured")
    ) -> subprocess.CompletedProcess[str]:
        """Ask a server something, whatever comes of it."""
        path = os.pathsep.join([str(Path(sys.executable).parent), self.person.variables["PATH"]])
        handed_on = [f"HERDBOOK_AGENT={self.agent}", f"USER={self.person.variables['USER']}"]
        given = [word for each in handed_on for word in ("-e", each)]
        return subprocess.run(
            [self.program, "--cli", "--protocol-era", self.era, *given, *server, *words],
            cwd=self.folder,
            env={**self.person.variables, "PATH": path},
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )

    def asks(self, *words: str, **more: Any) -> Any:
        """Ask a server something; the result as the inspector prints it."""
        told = self.tries(*words, **more)
        assert told.returncode == 0, told.stderr
        return json.loads(told.stdout)

    def does(self, tool: str, **arguments: str) -> Any:
        """Call a tool and read its structured answer; it must go well."""
        given = [word for pair in arguments.items() for word in ("--tool-arg", "=".join(pair))]
        answer = self.asks("--method", "tools/call", "--tool-name", tool, *given)
        return answer["structuredContent"]


@pytest.fixture
def inspector(node_modules: Path, person: Person, app: Path) -> Inspector:
    person.runs(app, "agent", "add", "otter", "--session", "s-1")
    program = node_modules / ".bin" / "mcp-inspector"
    assert program.exists(), f"npm has not put the inspector into {node_modules}"
    return Inspector(program, person, app, "otter")


@both_eras
def test_it_lists_every_tool_and_finds_no_fault_with_a_schema(
    inspector: Inspector, era: str
) -> None:
    """By the old protocol and the new one, and as strictly as it can."""
    inspector.era = era
    told = inspector.tries("--strict", "--method", "tools/list")
    assert told.returncode == 0, told.stderr
    assert told.stderr == ""
    tools = json.loads(told.stdout)["tools"]
    assert [each["name"] for each in tools] == [each.name for each in TOOLS]


@both_eras
def test_a_task_is_claimed_and_handed_in_through_it(
    inspector: Inspector, person: Person, app: Path, era: str
) -> None:
    """Each call is a server of its own, and all of them are the same agent."""
    inspector.era = era
    task = person.asks(app, "task", "add", "write the parser")["id"]
    assert [each["id"] for each in inspector.does("ready", limit="5")["tasks"]] == [task]
    held = inspector.does("claim", ttl="10m")
    assert held["task"]["id"] == task
    assert inspector.does("complete", summary="see parser.py")["status"] == "completed"
    known = person.asks(app, "task", "show", task)
    assert (known["status"], known["summary"]) == ("completed", "see parser.py")
    last = json.loads(person.runs(app, "journal", "list", "--json").splitlines()[-1])
    account = pwd.getpwuid(os.getuid()).pw_name
    assert (last["agent"], last["person"]) == ("otter", account)


def test_a_refusal_comes_as_an_error_of_the_tool(inspector: Inspector) -> None:
    """With the sentence that says what to do next."""
    told = inspector.tries("--method", "tools/call", "--tool-name", "release")
    assert told.returncode == TOOL_FAILED, told.stderr
    answer = json.loads(told.stdout)
    assert answer["isError"] is True
    assert "holds no task" in answer["content"][0]["text"]
    assert answer["_meta"]["herdbook/error"]["type"] == "NotFound"


def test_it_lists_and_reads_the_documents(inspector: Inspector, person: Person, app: Path) -> None:
    """The board as a resource, a task by the template of its address."""
    task = person.asks(app, "task", "add", "write the parser")["id"]
    (board,) = inspector.asks("--method", "resources/list")["resources"]
    (template,) = inspector.asks("--method", "resources/templates/list")["resourceTemplates"]
    assert board["uri"] == "herdbook://board"
    assert template["uriTemplate"] == "herdbook://task/{id}"
    for uri in (board["uri"], f"herdbook://task/{task}"):
        (content,) = inspector.asks("--method", "resources/read", "--uri", uri)["contents"]
        assert "write the parser" in content["text"]
        assert json.loads(content["text"])


@pytest.mark.parametrize(
    ("target", "file"), [("claude-code", ".mcp.json"), ("cursor", ".cursor/mcp.json")]
)
def test_it_starts_what_the_installed_file_says(
    inspector: Inspector, person: Person, app: Path, target: str, file: str
) -> None:
    """The inspector reads the same form of file as the agents do."""
    person.runs(app, "mcp", "install", target)
    server = ("--config", str(app / file), "--server", "herdbook")
    tools = inspector.asks("--method", "tools/list", server=server)["tools"]
    assert len(tools) == len(TOOLS)
