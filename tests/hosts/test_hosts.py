"""Claude Code, Codex and OpenCode, as npm has them, against a model that knows only `prime`.

`make soak` installs them below build/hosts and runs this; nothing is skipped, and a host that is
missing is an error. Each is set up by `herdbook setup`, started in a worktree that plain
`git worktree add` made afterwards, and its model takes its commands from the text it was sent: it
registers, claims, asks and completes. Everything is on loopback, with a home of its own.
"""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.conftest import PROGRAM, Person
from tests.hosts.model import FILLED, StandIn, serve_model

pytestmark = pytest.mark.soak
MODULES = Path(os.environ.get("HERDBOOK_HOSTS_NODE_MODULES", "build/hosts/node_modules")).absolute()
PROMPT = "work on the plan"
TIMEOUT = 300


def claude_code(person: Person, model: StandIn) -> tuple[list[str], dict[str, str]]:
    """The command and the environment of Claude Code."""
    del person
    words = ["claude", "-p", PROMPT, "--allowedTools", "Bash", "--model", "claude-sonnet-4-5"]
    return words, {
        "ANTHROPIC_API_KEY": "none",
        "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{model.port}",
        "DISABLE_AUTOUPDATER": "1",
        "IS_SANDBOX": "1",
    }


def codex(person: Person, model: StandIn) -> tuple[list[str], dict[str, str]]:
    """The command and the environment of Codex, whose login shell has its own PATH."""
    (person.home / ".bash_profile").write_text(f"export PATH={PROGRAM.parent}:$PATH\n")
    config = person.home / ".codex" / "config.toml"
    provider = (
        'model = "gpt-5-codex"\nmodel_provider = "stand_in"\n[model_providers.stand_in]\n'
        f'name = "stand-in"\nbase_url = "http://127.0.0.1:{model.port}/v1"\n'
        'wire_api = "responses"\nenv_key = "STAND_IN_KEY"\nrequires_openai_auth = false\n'
        "supports_websockets = false\n"
    )
    config.write_text(provider + config.read_text())
    words = ["codex", "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
    # A person trusts the hooks once, in /hooks.
    return [*words, "--dangerously-bypass-hook-trust", PROMPT], {"STAND_IN_KEY": "none"}


def opencode(person: Person, model: StandIn) -> tuple[list[str], dict[str, str]]:
    """The command and the environment of OpenCode."""
    config = person.home / ".config" / "opencode" / "opencode.json"
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "stand-in",
        "options": {"baseURL": f"http://127.0.0.1:{model.port}/v1", "apiKey": "none"},
        "models": {"in": {"name": "in", "tool_call": True}},
    }
    more = {
        "autoupdate": False,
        "model": "stand/in",
        "small_model": "stand/in",
        "provider": {"stand": provider},
        "permission": {"bash": "allow"},
    }
    config.write_text(json.dumps({**json.loads(config.read_text()), **more}))
    quiet = {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"}
    return ["opencode", "run", PROMPT], quiet


@pytest.mark.parametrize(
    ("name", "host"), [("claude-code", claude_code), ("codex", codex), ("opencode", opencode)]
)
def test_a_host_teaches_its_model_by_prime_alone_in_a_new_worktree(
    person: Person,
    app: Path,
    name: str,
    host: Callable[[Person, StandIn], tuple[list[str], dict[str, str]]],
) -> None:
    """The model registers, claims, asks the person and completes, in the words of the briefing."""
    person.runs(app, "task", "add", "write the parser")
    person.runs(app, "setup", name)
    side = app.parent / "by-hand"
    person.git(app, "worktree", "add", "--quiet", str(side))
    with serve_model() as model:
        words, variables = host(person, model)
        program = MODULES / ".bin" / words[0]
        assert program.exists(), f"{program} is missing: `make soak` installs it"
        ended = subprocess.run(
            [str(program), *words[1:]],
            cwd=side,
            env={
                **person.variables,
                **variables,
                "PATH": f"{PROGRAM.parent}:{person.variables['PATH']}",
                "TERM": "dumb",
                "HTTPS_PROXY": "http://127.0.0.1:9",
                "NO_PROXY": "127.0.0.1",
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=TIMEOUT,
        )
    told = ended.stdout[-2_000:] + ended.stderr[-2_000:]
    assert [each.split()[1] for each in model.ran] == ["agent", "claim", "message", "done"], told
    (task,) = person.asks(app, "task", "list")
    (agent,) = person.asks(app, "agent", "list")
    assert (task["status"], task["summary"]) == ("completed", FILLED["RESULT"])
    assert task["assignee_id"] == agent["id"]
    (message,) = person.asks(app, "message", "inbox")
    assert (message["sender_id"], message["content"]) == (agent["id"], FILLED["QUESTION"])


def test_claude_code_takes_the_plugins(person: Person, app: Path) -> None:
    """Its own check passes for both, and it installs them from the folder that we write."""
    variables = {**person.variables, "PATH": f"{MODULES / '.bin'}:{person.variables['PATH']}"}

    def claude(*words: str) -> str:
        ended = subprocess.run(
            [str(MODULES / ".bin" / "claude"), "plugin", *words],
            cwd=app,
            env={**variables, "DISABLE_AUTOUPDATER": "1"},
            capture_output=True,
            text=True,
            check=False,
            timeout=TIMEOUT,
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout

    root = person.runs(app, "plugin", "path").strip()
    for folder in (root, f"{root}/herdbook-review"):
        assert "Validation passed" in claude("validate", folder)
    claude("marketplace", "add", root)
    for plugin in ("herdbook", "herdbook-review"):
        claude("install", f"{plugin}@herdbook")
    whole = claude("details", "herdbook@herdbook")
    assert "Skills (2)  herdbook, herdbook-plan" in whole
    assert "LSP servers (0)" in whole
    assert "LSP servers (1)  herdbook" in claude("details", "herdbook-review@herdbook")
