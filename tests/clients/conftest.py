"""A repository under review, for clients nobody here wrote to find."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.e2e.conftest import PROGRAM, Person, app, person, warm

__all__ = ["app", "person", "warm"]

CHECKOUT = Path(__file__).resolve().parents[2]
FILE = "greeting.py"
LINES = (
    "def greeting(name: str) -> str:",
    '    """What to say to somebody 🐄."""',
    '    return "hello " + name',
    "",
    "",
    'print(greeting("herd"))',
)


class Reviewed(NamedTuple):
    """A repository with a file, one comment on its third line, an agent, a task and a proposal."""

    person: Person
    folder: Path
    file: Path
    initiative: str
    phase: str
    comment: str
    agent: str
    task: str
    proposal: str

    def runs(self, *words: str) -> str:
        """What the program prints in this repository: another process than the client's."""
        return self.person.runs(self.folder, *words)

    def asks(self, *words: str) -> Any:
        """What the program answers in this repository."""
        return self.person.asks(self.folder, *words)


@contextmanager
def adding(person: Person, folder: Path) -> "Iterator[Callable[..., str]]":
    """Adds rows in a folder by one server, line by line: a program for each takes much longer."""
    with subprocess.Popen(
        [PROGRAM, "rpc"],
        cwd=folder,
        env=person.variables,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        asking, answering = server.stdin, server.stdout

        def add(noun: str, **params: object) -> str:
            request = {"jsonrpc": "2.0", "id": 1, "method": f"{noun}.add", "params": params}
            print(json.dumps(request), file=asking, flush=True)
            answer = json.loads(answering.readline())
            assert "result" in answer, answer
            return str(answer["result"]["id"])

        yield add
        asking.close()
        assert server.wait(timeout=60) == 0


@pytest.fixture
def reviewed(person: Person, app: Path) -> Reviewed:
    file = app / FILE
    file.write_text("\n".join([*LINES, ""]))
    person.git(app, "add", FILE)
    person.git(app, "commit", "--quiet", "--message=greet")

    with adding(person, app) as added:
        initiative = added("initiative", name="greet everybody", branch="main")
        phase = added("phase", name="first words", initiative=initiative)
        on_line = {"file_path": FILE, "line_number": 3, "line_type": "added"}
        comment = added("review", body="an f-string?", phase=phase, **on_line)
        agent = added("agent", name="brisk-otter")
        task = added("task", name="greet in Danish", initiative=initiative)
        whose = {"agent": agent, "initiative": initiative, "target_type": "task"}
        proposal = added("proposal", title="say hi", summary="shorter", content="hi", **whose)
    return Reviewed(person, app, file, initiative, phase, comment, agent, task, proposal)


@pytest.fixture(scope="session")
def node_modules() -> Path:
    """Where the packages of package.json are."""
    told = os.environ.get("HERDBOOK_CLIENTS_NODE_MODULES")
    folder = Path(told) if told else CHECKOUT / "build" / "clients" / "node_modules"
    assert folder.is_dir(), f"there is no {folder}; `make clients` installs it"
    return folder


@pytest.fixture(scope="session")
def program() -> Callable[[str], str]:
    """Finds a program of this machine; one that is missing is an error, never a skip."""

    def find(name: str) -> str:
        found = shutil.which(name)
        assert found is not None, f"{name} is not installed, and these tests are about it"
        return found

    return find


@pytest.fixture(scope="session")
def herdbook() -> str:
    """The program that clients start."""
    return str(PROGRAM)
