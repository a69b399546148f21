"""What hosts and git tell through installed hooks, all the way to what people read."""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from herdbook.adapters.user_state import spool
from herdbook.entrypoints.hooks import opencode_plugin
from tests.e2e.conftest import PROGRAM, Person

MANY = 11
NODE = shutil.which("node")
PATH = f"{Path(PROGRAM).parent}:{os.environ['PATH']}"
SETTINGS = {"claude-code": ".claude/settings.local.json", "codex": ".codex/hooks.json"}


class Host:
    """A coding agent of one kind in one session, which runs the hooks that are installed for it."""

    def __init__(self, person: Person, folder: Path, kind: str, session: str) -> None:
        self.person, self.folder, self.session = person, folder, session
        self.variables: dict[str, str] = {}
        settings = json.loads((folder / SETTINGS[kind]).read_text())["hooks"]
        self._commands = {event: each[0]["hooks"][0]["command"] for event, each in settings.items()}
        is_codex = kind == "codex"
        self._transcript = None if is_codex else f"/people/me/.claude/{session}.jsonl"
        self._seen_by_programs = "CODEX_THREAD_ID" if is_codex else "CLAUDE_CODE_SESSION_ID"

    def tells(self, event: str, **more: Any) -> str:
        """Run the hook of an event with its payload on standard input; what it answers."""
        raw = {
            "session_id": self.session,
            "transcript_path": self._transcript,
            "cwd": str(self.folder),
            "hook_event_name": event,
            **more,
        }
        return self._shell(self._commands[event], json.dumps(raw))

    def uses(self, tool: str = "Read", **more: Any) -> None:
        """Use a tool that succeeds."""
        self.tells("PostToolUse", tool_name=tool, tool_input={}, tool_response={}, **more)

    def git(self, *words: str) -> str:
        """Run git as a tool of the session does."""
        return self._run(["git", *words], **{self._seen_by_programs: self.session})

    def commits(self, *subjects: str) -> None:
        """Make commits, one for each subject."""
        for subject in subjects:
            self.git("commit", "--quiet", "--allow-empty", f"--message={subject}")

    def _shell(self, command: str, given: str) -> str:
        return self._run(["sh", "-c", command], given)

    def _run(self, command: list[str], given: str = "", **variables: str) -> str:
        told = subprocess.run(
            command,
            cwd=self.folder,
            env={**self.person.variables, "PATH": PATH, **self.variables, **variables},
            input=given,
            capture_output=True,
            text=True,
            check=False,
        )
        assert told.returncode == 0, told.stderr
        return told.stdout


@pytest.fixture
def host(person: Person, app: Path) -> Callable[..., Host]:
    """Starts a session of a coding agent whose hooks, and git's, are installed."""
    person.runs(app, "hooks", "install", "git")
    for kind in SETTINGS:
        person.runs(app, "hooks", "install", kind, "--project")

    def start(kind: str, session: str, agent: str | None = None) -> Host:
        made = Host(person, app, kind, session)
        if agent is not None:
            made.variables["HERDBOOK_AGENT"] = agent
        return made

    return start


def standing(person: Person, folder: Path, agent: str) -> dict[str, Any]:
    """Where an agent stands."""
    (found,) = person.asks(folder, "standing", agent)
    answer: dict[str, Any] = found
    return answer


def advised(person: Person, folder: Path) -> dict[tuple[str, str | None, str | None], int]:
    """How many commits of each setup `advise` counts."""
    setups = person.asks(folder, "advise")["setups"]
    return {(each["provider"], each["model"], each["mode"]): each["commits"] for each in setups}


@pytest.mark.parametrize("often", [False, True], ids=["once", "after-every-commit"])
def test_two_models_of_one_host_are_two_setups(
    person: Person, app: Path, host: Callable[..., Host], often: bool
) -> None:
    """However often it is flushed."""
    for agent, model in (("otter", "claude-opus-4"), ("mole", "claude-sonnet-5")):
        at_work = host("claude-code", f"s-{agent}", agent)
        at_work.tells("SessionStart", source="startup", model=model)
        for number in range(MANY):
            at_work.uses()
            at_work.commits(f"{agent} {number}")
            if often:
                person.runs(app, "flush")
    assert advised(person, app) == {
        ("claude", "claude-opus-4", None): MANY,
        ("claude", "claude-sonnet-5", None): MANY,
    }
    answer = person.asks(app, "advise")
    assert (answer["verdict"], answer["scope"][:8]) == ("equal", "project ")
    assert standing(person, app, "mole")["experience_points"] == 6 * MANY


def test_every_host_is_known_by_the_hook_that_was_installed_for_it(
    person: Person, app: Path, host: Callable[..., Host]
) -> None:
    """Claude Code and Codex send the same events; a commit has the setup of its session."""
    claude, codex = host("claude-code", "c1"), host("codex", "01a1e345-78a1-7c82-8746-9bda1e5f360b")
    claude.tells("SessionStart", source="startup", model="claude-opus-4")
    codex.tells("SessionStart", source="startup", model="gpt-5-codex", permission_mode="default")
    for each in (claude, codex):
        each.uses()
        each.commits("one", "two")
    assert advised(person, app) == {
        ("claude", "claude-opus-4", None): 2,
        ("codex", "gpt-5-codex", "execute"): 2,
    }
    named = {each["agent"]: each["provider"] for each in person.asks(app, "standing")}
    assert named == {"session-c1": "claude", "session-1e5f360b": "codex"}


def test_a_model_and_a_mode_hold_until_another_is_told(
    person: Person, app: Path, host: Callable[..., Host]
) -> None:
    """Leaving plan mode ends it, and a resumed session may run another model."""
    otter = host("claude-code", "s1", "otter")
    otter.tells("SessionStart", source="startup", model="opus")
    for mode, subjects in (("plan", ("a",)), ("acceptEdits", ("b", "c"))):
        otter.tells("UserPromptSubmit", prompt="go", permission_mode=mode)
        otter.commits(*subjects)
        person.runs(app, "flush")
    otter.tells("SessionStart", source="resume", model="sonnet")
    otter.commits("d")
    assert advised(person, app) == {
        ("claude", "opus", "plan"): 1,
        ("claude", "opus", "execute"): 2,
        ("claude", "sonnet", "execute"): 1,
    }
    now = standing(person, app, "otter")
    assert (now["model"], now["mode"]) == ("sonnet", "execute")


def test_a_commit_without_an_agent_s_name_goes_to_the_agent_of_its_session(
    person: Person, app: Path, host: Callable[..., Host]
) -> None:
    """One that names no session either is told by `doctor`, and counts for nobody."""
    otter = host("claude-code", "s1", "otter")
    otter.tells("SessionStart", source="startup", model="opus")
    otter.variables.clear()
    otter.commits("of the session")
    person.git(app, "commit", "--quiet", "--allow-empty", "--message=of a person")
    assert person.asks(app, "flush")["dropped"] == 1
    assert standing(person, app, "otter")["commits"] == 1
    told = person.asks(app, "doctor")
    assert told["ok"] is True
    (dropped,) = told["dropped"]
    assert (dropped["commits"], Path(dropped["folder"])) == (1, app)
    assert "HERDBOOK_AGENT" in dropped["reason"]
    assert "1 commits in" in person.runs(app, "doctor")


def test_amended_and_rebased_commits_count_once(
    person: Person, app: Path, host: Callable[..., Host]
) -> None:
    """Also where each event is flushed by itself, and where several became one."""
    otter = host("claude-code", "s1", "otter")
    otter.commits("one")
    for message in ("better", "best"):
        otter.git("commit", "--quiet", "--amend", "--allow-empty", f"--message={message}")
    person.runs(app, "flush")
    assert standing(person, app, "otter")["commits"] == 1
    for number in range(4):
        (app / f"file{number}").write_text(f"{number}\n")
        otter.git("add", ".")
        otter.commits(f"more {number}")
    person.runs(app, "grade", "otter", "HEAD", "--self", "good", "--user", "excellence")
    otter.git("branch", "base", "HEAD~3")
    otter.git("switch", "--quiet", "--create", "side", "base~1")
    otter.commits("aside")
    otter.git("switch", "--quiet", "main")
    otter.git("rebase", "--quiet", "--onto", "side", "base")
    now = standing(person, app, "otter")
    assert (now["commits"], now["experience_points"]) == (6, 31)
    person.runs(app, "flush")
    assert standing(person, app, "otter") == now
    (retro,) = person.asks(app, "retro", "list")
    assert retro["commit_hash"] == otter.git("rev-parse", "HEAD").strip()
    otter.variables["GIT_SEQUENCE_EDITOR"] = "sed -i -e '2,$s/^pick/fixup/'"
    otter.git("rebase", "--quiet", "--interactive", "side")
    assert standing(person, app, "otter")["commits"] == 4
    assert sum(advised(person, app).values()) == 4


def test_what_an_agent_is_registered_with_counts_where_no_hook_tells_more(
    person: Person, app: Path, host: Callable[..., Host]
) -> None:
    """Only the git hook runs; an agent that nobody described is unknown, and no host's."""
    setup = ("--provider", "codex", "--model", "gpt-x", "--mode", "discuss")
    person.runs(app, "agent", "add", "fox", *setup)
    person.runs(app, "agent", "add", "hen")
    for agent in ("fox", "hen"):
        worker = host("claude-code", "", agent)
        worker.commits("one", "two")
    person.runs(app, "agent", "set", "fox", "--model", "gpt-y")
    host("claude-code", "", "fox").commits("three")
    assert advised(person, app) == {
        ("codex", "gpt-x", "discuss"): 2,
        ("codex", "gpt-y", "discuss"): 1,
        ("unknown", None, None): 2,
    }


def test_a_halted_agent_of_codex_is_denied_its_tools_by_the_installed_hook(
    person: Person, app: Path, host: Callable[..., Host]
) -> None:
    """And the end of its session brings the spool into the record."""
    heron = host("codex", "s1", "heron")
    heron.uses()
    heron.tells("SessionEnd", reason="exit")
    wait_until(lambda: not (spool.folder() / "events.jsonl").exists())
    person.runs(app, "bug", "heron")
    answer = json.loads(heron.tells("PreToolUse", tool_name="shell", tool_input={}))
    assert answer["hookSpecificOutput"]["permissionDecision"] == "deny"


def wait_until(holds: Callable[[], bool]) -> None:
    """Wait for what another process does."""
    for _ in range(600):
        if holds():
            return
        time.sleep(0.1)
    raise AssertionError("it never came to that")


def test_hooks_flush_a_spool_that_has_grown_as_large_as_the_setting_says(
    person: Person, app: Path, host: Callable[..., Host]
) -> None:
    """They learn the size from the next command that looks after the spool."""
    person.config.parent.mkdir(parents=True)
    person.config.write_text('flush_size = "1 KiB"\n')
    person.runs(app, "flush")
    otter = host("claude-code", "s1", "otter")
    for _ in range(5):
        otter.uses()
    wait_until((person.data / "record.lmdb" / "herdbook.json").exists)
    assert standing(person, app, "otter")["experience_points"] == 5


def test_hooks_of_an_earlier_version_still_work_and_are_replaced(person: Person, app: Path) -> None:
    """Their commands name no host."""
    person.runs(app, "hooks", "install", "codex", "--project")
    file = app / SETTINGS["codex"]
    now = file.read_text()
    file.write_text(now.replace("codex:", ""))
    old = Host(person, app, "codex", "s1")
    old.tells("PostToolUse", transcript_path="/people/me/.codex/s1.jsonl", tool_name="shell")
    assert [each["provider"] for each in person.asks(app, "standing")] == ["codex"]
    person.runs(app, "hooks", "install", "codex", "--project")
    assert json.loads(file.read_text()) == json.loads(now)
    person.runs(app, "hooks", "uninstall", "codex", "--project")
    assert "herdbook" not in (file.read_text() if file.exists() else "")


if NODE is not None:

    def test_a_commit_in_a_session_of_opencode_is_that_session_s(
        person: Person, app: Path, host: Callable[..., Host], tmp_path: Path
    ) -> None:
        """The plugin tells the programs that a session starts which session it is."""
        (tmp_path / "plugin.mjs").write_text(opencode_plugin.PLUGIN)
        script = f"""
        const {{ execFileSync }} = await import("node:child_process")
        const {{ Herdbook }} = await import({json.dumps(str(tmp_path / "plugin.mjs"))})
        const hooks = await Herdbook({{ directory: {json.dumps(str(app))} }})
        const sessions = [["ses_1", "build", "gpt-5"], ["ses_2", "plan", "k2"]]
        for (const [id, agent, modelID] of sessions) {{
          const message = {{ agent, model: {{ providerID: "p", modelID }} }}
          await hooks["chat.message"]({{ sessionID: id }}, {{ message, parts: [] }})
          await hooks["tool.execute.after"]({{ tool: "read", sessionID: id }}, {{ metadata: {{}} }})
          const shell = {{ env: {{}} }}
          await hooks["shell.env"]({{ cwd: ".", sessionID: id, callID: "c" }}, shell)
          execFileSync("git", ["commit", "--quiet", "--allow-empty", "--message=" + id], {{
            cwd: {json.dumps(str(app))}, env: {{ ...process.env, ...shell.env }},
          }})
        }}
        """
        outer = {**person.variables, "CLAUDE_CODE_SESSION_ID": "outer"}
        subprocess.run([str(NODE), "--input-type=module", "-e", script], check=True, env=outer)
        assert host
        assert advised(person, app) == {
            ("opencode", "gpt-5", "execute"): 1,
            ("opencode", "k2", "plan"): 1,
        }
