"""A person at a keyboard: a home directory of their own, real git, and the installed program."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import psycopg
import pytest

from herdbook.adapters.system.ids import random_id
from herdbook.domain.agents.model import Agent
from herdbook.domain.location.areas import Area
from herdbook.domain.plan.model import Task
from herdbook.entrypoints.context import AppContext
from herdbook.ports.unit_of_work.run import run
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.ports.world.halts import NO_HALTS
from herdbook.services.plan.claims import claim
from tests.e2e.first_starts import FirstStarts
from tests.e2e.warm_program import AT_START, PROGRAM, ROOT, WarmProgram, warm_program
from tests.postgres_server import TEMPLATES

Told = subprocess.CompletedProcess[str]
WORKFLOW = "tests.e2e.workflow"
ENGINES = ("duckdb", "lmdb", "postgres")


class Person:
    """Somebody who types commands, which a warm program runs where there is one.

    What is about the start of the installed program takes `starts`.
    """

    def __init__(self, home: Path, warm: WarmProgram | None = None) -> None:
        self.home = home
        self.warm = warm
        self.variables = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "USER": "somebody",
            "LC_ALL": "C.UTF-8",
            "HERDBOOK_BACKUP": "off",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            **{
                f"GIT_{role}_{what}": "somebody@example.com"
                for role in ("AUTHOR", "COMMITTER")
                for what in ("NAME", "EMAIL")
            },
        }
        self.data = home / ".local" / "share" / "herdbook"
        self.config = home / ".config" / "herdbook" / "config.toml"

    def tries(self, folder: Path, *words: str, stdin: str = "", **variables: str) -> Told:
        """Run `herdbook` in a folder, whatever comes of it."""
        at_start = any(name.startswith(AT_START) for name in variables)
        if self.warm is None or at_start or self._is_first(words, variables):
            return self.starts(folder, *words, stdin=stdin, **variables)
        return self.warm.run(folder, words, {**self.variables, **variables}, stdin)

    def works(self, folder: Path, *words: str, **variables: str) -> Any:
        """Run `tests/e2e/workflow.py` in a folder to its end; what it came to."""
        return self.runs_module(WORKFLOW, folder, "run", *words, **variables)

    def runs_module(self, module: str, folder: Path, *words: str, **variables: str) -> Any:
        """Run the `main` of a module in a folder to its end; the JSON that it prints."""
        environment = {**self.variables, **variables}
        if self.warm is None or self._is_first((module,), variables):
            told = subprocess.run(
                [sys.executable, "-m", module, *words],
                cwd=folder,
                env={**environment, "PYTHONPATH": str(ROOT)},
                capture_output=True,
                text=True,
                check=False,
            )
        else:
            told = self.warm.run(folder, words, environment, module=module)
        assert (told.returncode, told.stderr) == (0, "")
        return json.loads(told.stdout)

    def _is_first(self, words: Sequence[str], variables: Mapping[str, str]) -> bool:
        """Whether the installed program is to run this because it has not run its like."""
        assert self.warm is not None
        chosen = self.config.read_text(errors="replace") if self.config.is_file() else ""
        given = "".join(variables.values())
        engines = [name for name in ENGINES if name in chosen + given]
        return self.warm.is_first(words, "+".join(engines))

    def starts(self, folder: Path, *words: str, stdin: str = "", **variables: str) -> Told:
        """Run the installed program in a folder from its start on, whatever comes of it."""
        return subprocess.run(
            [PROGRAM, *words],
            cwd=folder,
            env={**self.variables, **variables},
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )

    def runs(self, folder: Path, *words: str, **variables: str) -> str:
        """Run `herdbook` in a folder and read what it prints; it must end well."""
        told = self.tries(folder, *words, **variables)
        assert told.returncode == 0, told.stderr
        return told.stdout

    def asks(self, folder: Path, *words: str, **variables: str) -> Any:
        """Run `herdbook … --json --full` in a folder; what it answers, with every field."""
        return json.loads(self.runs(folder, *words, "--json", "--full", **variables))

    def chooses(self, backend: str, *more: str) -> None:
        """Choose an engine in one line of their own settings."""
        self.config.parent.mkdir(parents=True)
        self.config.write_text("\n".join([f'backend = "{backend}"', *more, ""]))

    def at(self, folder: Path) -> AppContext:
        """A folder as a program of this person sees it."""
        return AppContext.at(folder, self.variables)

    def git(self, folder: Path, *words: str, **variables: str) -> str:
        """Run git in a folder."""
        git = shutil.which("git")
        assert git is not None
        return subprocess.run(
            [git, *words],
            cwd=folder,
            env={**self.variables, **variables},
            check=True,
            capture_output=True,
            text=True,
        ).stdout

    def commits(self, folder: Path, agent: str, subject: str) -> str:
        """Let an agent commit in a folder; the hash."""
        words = ("commit", "--quiet", "--allow-empty", f"--message={subject}")
        self.git(folder, *words, HERDBOOK_AGENT=agent)
        return self.git(folder, "rev-parse", "HEAD").strip()

    def registers(self, folder: Path, *agents: str) -> None:
        """Register agents in a repository, so that their names are known."""
        for agent in agents:
            self.runs(folder, "agent", "add", agent)

    def repository(self, folder: Path, *, origin: str | None = None) -> Path:
        """Make a repository with one commit."""
        folder.mkdir(parents=True)
        self.git(folder, "init", "--quiet", "--initial-branch=main")
        self.git(folder, "commit", "--quiet", "--allow-empty", "--message=begin")
        if origin is not None:
            self.git(folder, "remote", "add", "origin", origin)
        return folder


@pytest.fixture(scope="session")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WarmProgram | None]:
    """The program without its start, unless every step is to be run by the installed one."""
    cold = os.environ.get("HERDBOOK_TEST_COLD", "")
    if cold not in {"", "first"}:
        yield None
        return
    with warm_program(Person(tmp_path_factory.mktemp("home")).variables) as program:
        if cold:
            program.is_first = FirstStarts(Path(os.environ[TEMPLATES]) / "started").is_first
        yield program


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, warm: WarmProgram | None) -> Person:
    """Somebody with an empty home directory; what this process does itself, it does as them."""
    home = tmp_path / "home"
    home.mkdir()
    for name in [name for name in os.environ if name.startswith(("XDG_", "GIT_", "HERDBOOK_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    return Person(home, warm)


@pytest.fixture
def postgres_url(postgres_server_url: str) -> Iterator[str]:
    """A schema of its own on a server of this machine."""
    schema = f"e2e_{random_id()}"
    yield f"{postgres_server_url}{'&' if '?' in postgres_server_url else '?'}schema={schema}"
    with psycopg.connect(postgres_server_url, autocommit=True) as server:
        server.execute(f'DROP SCHEMA IF EXISTS "{schema}" CASCADE')


@pytest.fixture(params=["lmdb", "duckdb", "postgres"])
def keeper(request: pytest.FixtureRequest, person: Person) -> Person:
    """Somebody who keeps everything on one engine, each in turn."""
    chosen: str = request.param
    person.chooses(request.getfixturevalue("postgres_url") if chosen == "postgres" else chosen)
    return person


@pytest.fixture
def app(person: Person, tmp_path: Path) -> Path:
    """A repository of theirs."""
    return person.repository(tmp_path / "app", origin="https://example.com/team/app.git")


def at_work(person: Person, folder: Path, name: str) -> str:
    """Let an agent work in a worktree; the name of the task it holds."""
    here = person.at(folder)

    def begin(uow: UnitOfWork) -> str:
        agent = uow.agents.add(Agent(name=name, status="running"))
        uow.tasks.add(Task(name=f"the task of {name}"))
        held = claim(uow, agent.id, halts=NO_HALTS)
        assert held is not None
        return held.task.name

    with here.open(Area.WORK, create=True) as store:
        run(store, here.workspace.space(Area.WORK), here.record_worktree, actor=here.actor)
        return run(store, here.workspace.space(Area.WORK), begin, actor=here.actor)


Files = dict[str, bytes | str]


@pytest.fixture
def everything_in() -> Callable[[Path], Files]:
    """Tells every file under a folder with its content, so that two looks can be compared."""

    def look(folder: Path) -> Files:
        found: Files = {}
        for path in sorted(folder.rglob("*")):
            name = str(path.relative_to(folder))
            if path.is_symlink():
                found[name] = str(path.readlink())
            elif path.is_file():
                found[name] = path.read_bytes()
            else:
                found[name] = ""
        return found

    return look
