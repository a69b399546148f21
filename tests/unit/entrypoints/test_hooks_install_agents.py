"""Installing into the files of coding agents, and taking it out again to the byte."""

import json
import shlex
import shutil
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from herdbook.adapters import halted, spool
from herdbook.domain.errors import InvalidValue, StoreUnavailable
from herdbook.entrypoints.hooks.agents import Site, install, site, uninstall
from herdbook.entrypoints.hooks.changes import difference, make
from tests.unit.entrypoints.records import OUT_OF_REACH

NODE = shutil.which("node")
SETTINGS = '{\n   "permissions": {"allow": ["Bash"]}, // mine\n   "hooks": {}\n}'
each_agent = pytest.mark.parametrize("target", ["claude-code", "codex"])


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("HERDBOOK_RECORD", OUT_OF_REACH)
    root = tmp_path / "app"
    root.mkdir()
    return root


@pytest.fixture
def variables(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path / "home")}


def everything(folder: Path) -> list[tuple[str, bytes]]:
    return [
        (str(path.relative_to(folder)), path.read_bytes() if path.is_file() else b"")
        for path in sorted(folder.rglob("*"))
    ]


@pytest.mark.parametrize(
    ("target", "user", "name"),
    [
        ("claude-code", False, "app/.claude/settings.local.json"),
        ("claude-code", True, "home/.claude/settings.json"),
        ("codex", False, "app/.codex/hooks.json"),
        ("codex", True, "home/.codex/hooks.json"),
        ("opencode", False, "app/.opencode/plugins/herdbook.js"),
        ("opencode", True, "home/.config/opencode/plugins/herdbook.js"),
    ],
)
def test_what_holds_paths_of_this_machine_is_for_this_user_alone(
    target: str, user: bool, name: str, root: Path, variables: dict[str, str]
) -> None:
    """A file that a project may share names none."""
    there = site(target, root, variables, user=user)
    assert there.path == root.parent / name
    make(install(target, there))
    shared = target == "opencode" or not there.private
    assert (str(Path(sys.executable)) in there.path.read_text()) is not shared


@pytest.mark.parametrize("target", ["claude-code", "codex", "opencode"])
def test_where_nothing_was_nothing_is_left(
    target: str, root: Path, variables: dict[str, str]
) -> None:
    """Neither the file nor the folders that were made for it."""
    there = site(target, root, variables, user=False)
    make(install(target, there))
    assert install(target, there).changes == []
    make(uninstall(target, there))
    assert everything(root) == []
    assert uninstall(target, there).changes == []


@each_agent
@pytest.mark.parametrize("text", [SETTINGS, "", "{}", "{\n}\n", '{"hooks":{"Stop":[ ]}}'])
def test_a_file_that_nobody_changed_since_comes_back_to_the_byte(
    target: str, text: str, root: Path, variables: dict[str, str]
) -> None:
    """With its mode, after any number of installs."""
    there = site(target, root, variables, user=True)
    there.path.parent.mkdir(parents=True)
    there.path.write_text(text)
    there.path.chmod(0o640)
    before = everything(root.parent / "home")
    for _ in range(2):
        make(install(target, there))
    assert there.path.read_text() != text
    make(uninstall(target, there))
    assert everything(root.parent / "home") == before
    assert stat.S_IMODE(there.path.stat().st_mode) == 0o640


@each_agent
def test_what_others_change_meanwhile_stays(
    target: str, root: Path, variables: dict[str, str]
) -> None:
    """Also when it is installed once more before it is taken out."""
    there = site(target, root, variables, user=True)
    there.path.parent.mkdir(parents=True)
    there.path.write_text(SETTINGS)
    make(install(target, there))
    there.path.write_text(there.path.read_text().replace("// mine", "// ours"))
    assert install(target, there).changes == []
    there.path.write_text(there.path.read_text().replace(f'"{sys.executable} ', '"/old/python '))
    make(install(target, there))
    assert "/old/python" not in there.path.read_text()
    make(uninstall(target, there))
    text = there.path.read_text()
    assert '"permissions": {"allow": ["Bash"]}' in text
    assert "// ours" in text
    assert "hook.py" not in text
    make(install(target, there))
    make(uninstall(target, there))
    assert there.path.read_text() == text


@each_agent
def test_the_difference_shows_what_will_change(
    target: str, root: Path, variables: dict[str, str]
) -> None:
    """Before anything has."""
    there = site(target, root, variables, user=True)
    there.path.parent.mkdir(parents=True)
    there.path.write_text(SETTINGS)
    (change,) = install(target, there).changes
    lines = difference(change).splitlines()
    assert lines[:2] == [f"--- {there.path}", f"+++ {there.path}"]
    assert any("hook.py" in line for line in lines if line.startswith("+"))
    assert there.path.read_text() == SETTINGS


def test_a_settings_file_that_is_a_link_stays_one(root: Path, variables: dict[str, str]) -> None:
    """Many keep their settings elsewhere, under version control."""
    there = site("claude-code", root, variables, user=True)
    there.path.parent.mkdir(parents=True)
    real = root.parent / "dotfiles.json"
    real.write_text(SETTINGS)
    there.path.symlink_to(real)
    make(install("claude-code", there))
    assert there.path.is_symlink()
    assert "hook.py" in real.read_text()
    make(uninstall("claude-code", there))
    assert (there.path.is_symlink(), real.read_text()) == (True, SETTINGS)


@pytest.mark.parametrize("data", [b"{", b"\xff{}", b'{"hooks": 1}'])
def test_settings_that_are_not_understood_are_left_as_they_are(
    data: bytes, root: Path, variables: dict[str, str]
) -> None:
    """And so says the error."""
    there = site("claude-code", root, variables, user=False)
    there.path.parent.mkdir(parents=True)
    there.path.write_bytes(data)
    for plan in (install, uninstall):
        with pytest.raises(InvalidValue, match="Nothing was changed"):
            plan("claude-code", there)
    assert there.path.read_bytes() == data


def test_a_plugin_that_somebody_changed_is_left_as_it_is(
    root: Path, variables: dict[str, str]
) -> None:
    """What they wrote into it is theirs."""
    there = site("opencode", root, variables, user=False)
    make(install("opencode", there))
    there.path.write_text(there.path.read_text() + "// mine\n")
    for plan in (install, uninstall):
        with pytest.raises(InvalidValue, match="Nothing was changed"):
            plan("opencode", there)


def test_a_file_that_cannot_be_written_is_as_it_was(root: Path, variables: dict[str, str]) -> None:
    """And the system's error does not get out."""
    there = site("codex", root, variables, user=False)
    (root / ".codex").write_text("in the way")
    with pytest.raises(StoreUnavailable, match="cannot be"):
        make(install("codex", there))
    assert (root / ".codex").read_text() == "in the way"


def test_codex_users_are_told_to_trust_the_hooks(root: Path, variables: dict[str, str]) -> None:
    """It skips them silently until then."""
    notes = install("codex", site("codex", root, variables, user=True)).notes
    assert any("trust" in note for note in notes)


def commands(there: Site) -> dict[str, dict[str, Any]]:
    """The one command of each event."""
    hooks = json.loads(there.path.read_text())["hooks"]
    return {event: group["hooks"][0] for event, (group,) in hooks.items()}


def test_every_command_that_is_installed_spools_its_event(
    root: Path, variables: dict[str, str]
) -> None:
    """Started by a shell, as the agent does it."""
    there = site("claude-code", root, variables, user=False)
    make(install("claude-code", there))
    for event, command in commands(there).items():
        told = subprocess.run(
            ["sh", "-c", command["command"]],  # noqa: S607 - whichever shell is there
            input=json.dumps({"hook_event_name": event}).encode(),
            check=True,
            capture_output=True,
        )
        assert (told.stdout, told.stderr) == (b"", b"")
        assert shlex.split(command["command"])[1:3] == ["-I", "-S"]
    assert [each.event for each in spool.taken()] == list(commands(there))
    assert all(each.event == each.raw["hook_event_name"] for each in spool.taken())


def test_an_agent_waits_only_where_an_answer_counts(root: Path, variables: dict[str, str]) -> None:
    """PreToolUse is answered, and at its end a session must not outrun its hook."""
    there = site("claude-code", root, variables, user=False)
    make(install("claude-code", there))
    waits = {event for event, command in commands(there).items() if not command.get("async")}
    assert {"PreToolUse", "SessionStart", "SessionEnd"} <= waits
    assert "PostToolUse" not in waits


if NODE is not None:

    def test_the_plugin_spools_what_opencode_tells_it(
        root: Path, variables: dict[str, str]
    ) -> None:
        """The events it knows, from a real JavaScript engine, readable as any other."""
        there = site("opencode", root, variables, user=False)
        make(install("opencode", there))
        module = root / "plugin.mjs"
        shutil.copy(there.path, module)
        script = f"""
        const {{ Herdbook }} = await import({json.dumps(str(module))})
        const hooks = await Herdbook({{ directory: "/some/where" }})
        await hooks["tool.execute.after"]({{ tool: "bash", sessionID: "s1", callID: "c" }}, {{}})
        const properties = {{ sessionID: "é\\n" }}
        await hooks.event({{ event: {{ type: "session.idle", properties }} }})
        await hooks.event({{ event: {{ type: "message.part.updated", properties: {{}} }} }})
        """
        subprocess.run([str(NODE), "--input-type=module", "-e", script], check=True)
        tool, idle = spool.taken()
        assert (tool.event, tool.cwd, tool.raw["tool"]) == (
            "tool.execute.after",
            "/some/where",
            "bash",
        )
        assert idle.raw == {"type": "session.idle", "properties": {"sessionID": "é\n"}}
        assert stat.S_IMODE((spool.folder()).stat().st_mode) == 0o700

    def test_the_plugin_refuses_the_tools_of_a_halted_session(
        root: Path, variables: dict[str, str]
    ) -> None:
        """With the reason as its error, as OpenCode wants it; the tools of others it lets be."""
        there = site("opencode", root, variables, user=False)
        make(install("opencode", there))
        module = root / "plugin.mjs"
        shutil.copy(there.path, module)
        halted.halt_only({"sés/1": "otter: it is halted"})
        script = f"""
        const {{ Herdbook }} = await import({json.dumps(str(module))})
        const hooks = await Herdbook({{ directory: "/some/where" }})
        await hooks["tool.execute.before"]({{ tool: "bash", sessionID: "another" }}, {{}})
        await hooks["tool.execute.before"]({{ tool: "bash", sessionID: "sés/1" }}, {{}})
          .catch((error) => console.log(error.message))
        """
        told = subprocess.run(
            [str(NODE), "--input-type=module", "-e", script],
            check=True,
            capture_output=True,
            text=True,
            encoding="utf-8",
        )
        assert told.stdout == "otter: it is halted\n"

    def test_the_plugin_lets_the_spool_be_flushed_when_a_session_is_over(
        root: Path, variables: dict[str, str]
    ) -> None:
        """By a program that it does not wait for; where there is none, nothing happens."""
        there = site("opencode", root, variables, user=False)
        make(install("opencode", there))
        module = root / "plugin.mjs"
        shutil.copy(there.path, module)
        script = f"""
        const {{ Herdbook }} = await import({json.dumps(str(module))})
        const hooks = await Herdbook({{ directory: {json.dumps(str(root))} }})
        await hooks.event({{ event: {{ type: "session.deleted", properties: {{}} }} }})
        """
        program = root / "herdbook"
        for made in (False, True):
            if made:
                program.write_text('#!/bin/sh\necho "$@" > told.new; mv told.new told\n')
                program.chmod(0o700)
            subprocess.run(
                [str(NODE), "--input-type=module", "-e", script],
                check=True,
                env={**variables, "PATH": f"{root}:/bin:/usr/bin" if made else str(root)},
            )
        told = root / "told"
        for _ in range(300):
            if told.exists():
                break
            time.sleep(0.1)
        assert told.read_text() == "flush --gently\n"
