"""What a call costs on every store: how often it opens one, and how often it commits."""

import gc
import os
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from herdbook.domain.errors import HerdbookError
from herdbook.entrypoints.cli.run_command import main
from herdbook.entrypoints.context import AppContext
from herdbook.entrypoints.mcp.client_session import ClientSession
from herdbook.entrypoints.mcp.invoke import call
from herdbook.entrypoints.mcp.tools import TOOLS
from herdbook.entrypoints.rpc.methods import methods
from herdbook.entrypoints.server_context import ServerContext
from herdbook.services.agents import agent_lifecycle
from tests.contract.counted import Counts

_TOOLS = {tool.name: tool for tool in TOOLS}


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository of somebody with an empty home directory."""
    for name in [name for name in os.environ if name.startswith(("XDG_", "GIT_", "HERDBOOK_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    (tmp_path / "home").mkdir()
    folder = tmp_path / "app"
    git = shutil.which("git")
    assert git is not None
    subprocess.run([git, "init", "--quiet", str(folder)], check=True)
    return folder


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Counts:
    return Counts(monkeypatch)


@pytest.fixture
def person(
    app: Path, engine: str, new_url: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., None]]:
    """Runs commands in the repository, in this process; work and record are stores apart."""
    monkeypatch.setenv("HERDBOOK_WORK", new_url(engine))
    monkeypatch.setenv("HERDBOOK_RECORD", new_url(engine))

    def run(*words: str) -> None:
        assert main(["-C", str(app), *words]) == 0

    yield run
    gc.enable()  # a command turns it off


def test_a_command_opens_its_store_once_and_commits_once(
    person: Callable[..., None], counts: Counts
) -> None:
    """Also where it is the first to be given in its worktree."""
    person("agent", "add", "otter")
    assert (counts.opened, counts.counts["commits"]) == (["work"], 1)
    counts.reset()
    person("task", "add", "an idea")
    assert (counts.opened, counts.counts["writes"], counts.counts["commits"]) == (["work"], 1, 1)


def test_a_command_that_only_asks_opens_its_store_once_and_commits_nothing(
    person: Callable[..., None], counts: Counts
) -> None:
    """Neither a question nor what finds nothing to do."""
    person("agent", "add", "otter")
    counts.reset()
    person("ready")
    assert (counts.opened, counts.counts["commits"]) == (["work"], 0)
    counts.reset()
    person("agent", "crashed")
    assert (counts.opened, counts.counts["commits"]) == (["work"], 0)


def test_a_claim_opens_two_stores_and_commits_once(
    person: Callable[..., None], counts: Counts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The work, and the record for what it says of halts; so does the end of the task."""
    monkeypatch.setenv("HERDBOOK_AGENT", "otter")
    person("agent", "add", "otter")
    person("task", "add", "an idea")
    person("activity", "add", "looked around")
    counts.reset()
    person("claim")
    assert (sorted(counts.opened), counts.counts["commits"]) == (["record", "work"], 1)
    counts.reset()
    person("done")
    assert (counts.opened, counts.counts["writes"], counts.counts["commits"]) == (["work"], 1, 1)


def test_who_acts_is_found_out_once_per_transaction(
    person: Callable[..., None], counts: Counts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However often a use case asks for it."""
    monkeypatch.setenv("HERDBOOK_AGENT", "otter")
    person("agent", "add", "otter")
    person("task", "add", "an idea")
    person("claim")
    counts.reset()
    asked: list[object] = []
    acting = agent_lifecycle.find_acting_agent
    monkeypatch.setattr(
        agent_lifecycle,
        "find_acting_agent",
        lambda uow, *words: (asked.append(uow), acting(uow, *words))[1],
    )
    person("done")
    assert len(asked) == counts.counts["writes"] + counts.counts["reads"] == 1


def test_a_server_that_is_warm_opens_nothing(
    person: Callable[..., None], counts: Counts, app: Path
) -> None:
    """And commits once for every call that writes."""
    person("agent", "add", "otter")
    person("activity", "add", "looked around", "--agent", "otter")
    server = ServerContext(app, dict(os.environ))
    try:
        methods()["task.add"](server.call(), {"name": "an idea"})
        methods()["task.claim"](server.call(), {"agent": "otter"})
        counts.reset()
        methods()["task.add"](server.call(), {"name": "another"})
        assert (counts.opened, counts.counts["writes"], counts.counts["commits"]) == ([], 1, 1)
        counts.reset()
        methods()["task.claim"](server.call(), {"agent": "otter"})
        assert (counts.opened, counts.counts["writes"], counts.counts["commits"]) == ([], 1, 1)
        counts.reset()
        methods()["task.ready"](server.call(), {})
        assert (counts.opened, counts.counts["reads"], counts.counts["commits"]) == ([], 1, 0)
    finally:
        server.close()


def test_no_method_opens_a_store_of_a_warm_server_again(
    person: Callable[..., None], counts: Counts, app: Path
) -> None:
    """Whatever can be called without parameters, also if it is refused."""
    person("agent", "add", "otter")
    person("activity", "add", "looked around", "--agent", "otter")
    server = ServerContext(app, {**os.environ, "HERDBOOK_AGENT": "otter"})
    opened: dict[str, list[str]] = {}
    try:
        methods()["task.add"](server.call(), {"name": "an idea"})
        for name, method in methods().items():
            if any(each.required for each in method.parameters):
                continue
            for _ in range(2):
                counts.reset()
                with suppress(HerdbookError):
                    method(server.call(), {})
            if counts.opened:
                opened[name] = list(counts.opened)
    finally:
        server.close()
    assert opened == {}


def test_tools_of_a_warm_server_open_nothing(
    person: Callable[..., None], counts: Counts, app: Path
) -> None:
    """And commit once for every call that writes."""
    person("agent", "add", "otter")
    person("activity", "add", "looked around", "--agent", "otter")
    person("agent", "stop", "otter")
    caller = ClientSession(AppContext.at(app, dict(os.environ)), print)

    def use(tool: str, **given: object) -> None:
        counts.reset()
        call(_TOOLS[tool], caller, given, threading.Event())

    try:
        use("introduce", name="otter")
        assert counts.counts["commits"] == 1
        for number in range(3):
            person("task", "add", f"task {number}")
        use("message", content="I have begun")
        assert (counts.opened, counts.counts["writes"], counts.counts["commits"]) == ([], 1, 1)
        use("claim")
        assert (counts.opened, counts.counts["writes"], counts.counts["commits"]) == ([], 1, 1)
        use("complete", summary="done")
        assert (counts.opened, counts.counts["writes"], counts.counts["commits"]) == ([], 1, 1)
        use("ready")
        assert (counts.opened, counts.counts["reads"], counts.counts["commits"]) == ([], 1, 0)
    finally:
        caller.close()
