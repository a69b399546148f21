"""Installing into the files of coding agents, and taking it out again to the byte."""

import json
import shlex
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from herdbook.adapters.user_state import spool
from herdbook.domain.errors import InvalidValue, StoreUnavailable
from herdbook.entrypoints.hooks.file_changes import apply_plan, unified_diff
from herdbook.entrypoints.hooks.hosts import SettingsFile, install, settings_file, uninstall
from tests.unit.entrypoints.records import OUT_OF_REACH

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
    there = settings_file(target, root, variables, user=user)
    assert there.path == root.parent / name
    apply_plan(install(target, there))
    shared = target == "opencode" or not there.private
    assert (str(Path(sys.executable)) in there.path.read_text()) is not shared


@pytest.mark.parametrize("target", ["claude-code", "codex", "opencode"])
def test_where_nothing_was_nothing_is_left(
    target: str, root: Path, variables: dict[str, str]
) -> None:
    """Neither the file nor the folders that were made for it."""
    there = settings_file(target, root, variables, user=False)
    apply_plan(install(target, there))
    assert install(target, there).changes == []
    apply_plan(uninstall(target, there))
    assert everything(root) == []
    assert uninstall(target, there).changes == []


@each_agent
@pytest.mark.parametrize("text", [SETTINGS, "", "{}", "{\n}\n", '{"hooks":{"Stop":[ ]}}'])
def test_a_file_that_nobody_changed_since_comes_back_to_the_byte(
    target: str, text: str, root: Path, variables: dict[str, str]
) -> None:
    """With its mode, after any number of installs."""
    there = settings_file(target, root, variables, user=True)
    there.path.parent.mkdir(parents=True)
    there.path.write_text(text)
    there.path.chmod(0o640)
    before = everything(root.parent / "home")
    for _ in range(2):
        apply_plan(install(target, there))
    assert there.path.read_text() != text
    apply_plan(uninstall(target, there))
    assert everything(root.parent / "home") == before
    assert stat.S_IMODE(there.path.stat().st_mode) == 0o640


@each_agent
def test_what_others_change_meanwhile_stays(
    target: str, root: Path, variables: dict[str, str]
) -> None:
    """Also when it is installed once more before it is taken out."""
    there = settings_file(target, root, variables, user=True)
    there.path.parent.mkdir(parents=True)
    there.path.write_text(SETTINGS)
    apply_plan(install(target, there))
    there.path.write_text(there.path.read_text().replace("// mine", "// ours"))
    assert install(target, there).changes == []
    there.path.write_text(there.path.read_text().replace(f'"{sys.executable} ', '"/old/python '))
    apply_plan(install(target, there))
    assert "/old/python" not in there.path.read_text()
    apply_plan(uninstall(target, there))
    text = there.path.read_text()
    assert '"permissions": {"allow": ["Bash"]}' in text
    assert "// ours" in text
    assert "hook.py" not in text
    apply_plan(install(target, there))
    apply_plan(uninstall(target, there))
    assert there.path.read_text() == text


@each_agent
def test_the_difference_shows_what_will_change(
    target: str, root: Path, variables: dict[str, str]
) -> None:
    """Before anything has."""
    there = settings_file(target, root, variables, user=True)
    there.path.parent.mkdir(parents=True)
    there.path.write_text(SETTINGS)
    (change,) = install(target, there).changes
    lines = unified_diff(change).splitlines()
    assert lines[:2] == [f"--- {there.path}", f"+++ {there.path}"]
    assert any("hook.py" in line for line in lines if line.startswith("+"))
    assert there.path.read_text() == SETTINGS


def test_a_settings_file_that_is_a_link_stays_one(root: Path, variables: dict[str, str]) -> None:
    """Many keep their settings elsewhere, under version control."""
    there = settings_file("claude-code", root, variables, user=True)
    there.path.parent.mkdir(parents=True)
    real = root.parent / "dotfiles.json"
    real.write_text(SETTINGS)
    there.path.symlink_to(real)
    apply_plan(install("claude-code", there))
    assert there.path.is_symlink()
    assert "hook.py" in real.read_text()
    apply_plan(uninstall("claude-code", there))
    assert (there.path.is_symlink(), real.read_text()) == (True, SETTINGS)


@pytest.mark.parametrize("data", [b"{", b"\xff{}", b'{"hooks": 1}'])
def test_settings_that_are_not_understood_are_left_as_they_are(
    data: bytes, root: Path, variables: dict[str, str]
) -> None:
    """And so says the error."""
    there = settings_file("claude-code", root, variables, user=False)
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
    there = settings_file("opencode", root, variables, user=False)
    apply_plan(install("opencode", there))
    there.path.write_text(there.path.read_text() + "// mine\n")
    for plan in (install, uninstall):
        with pytest.raises(InvalidValue, match="Nothing was changed"):
            plan("opencode", there)


def test_a_file_that_cannot_be_written_is_as_it_was(root: Path, variables: dict[str, str]) -> None:
    """And the system's error does not get out."""
    there = settings_file("codex", root, variables, user=False)
    (root / ".codex").write_text("in the way")
    with pytest.raises(StoreUnavailable, match="cannot be"):
        apply_plan(install("codex", there))
    assert (root / ".codex").read_text() == "in the way"


def test_codex_users_are_told_to_trust_the_hooks(root: Path, variables: dict[str, str]) -> None:
    """It skips them silently until then."""
    notes = install("codex", settings_file("codex", root, variables, user=True)).notes
    assert any("trust" in note for note in notes)


@each_agent
def test_who_keeps_remarks_in_the_settings_is_told_that_the_agent_reads_none_of_them(
    target: str, root: Path, variables: dict[str, str]
) -> None:
    """It would be silent; where the file is plain JSON there is nothing to say."""
    there = settings_file(target, root, variables, user=True)
    there.path.parent.mkdir(parents=True)
    for text, told in [(SETTINGS, True), ('{"a": [1,]}', True), ('{"a": [1]}', False)]:
        there.path.write_text(text)
        for _ in range(2):
            plan = install(target, there)
            assert any("plain JSON" in note for note in plan.notes) is told
            apply_plan(plan)


def test_codex_tells_the_end_of_a_session_without_a_complaint(
    root: Path, variables: dict[str, str]
) -> None:
    """Nothing else starts the flush; more than three seconds there it calls a fault."""
    there = settings_file("codex", root, variables, user=True)
    apply_plan(install("codex", there))
    assert {"SessionEnd", "SubagentStop"} <= set(commands(there))
    assert commands(there)["SessionEnd"]["timeout"] <= 3


def commands(there: SettingsFile) -> dict[str, dict[str, Any]]:
    """The one command of each event."""
    hooks = json.loads(there.path.read_text())["hooks"]
    return {event: group["hooks"][0] for event, (group,) in hooks.items()}


def test_every_command_that_is_installed_spools_its_event(
    root: Path, variables: dict[str, str]
) -> None:
    """Started by a shell, as the agent does it."""
    there = settings_file("claude-code", root, variables, user=False)
    apply_plan(install("claude-code", there))
    for event, command in commands(there).items():
        told = subprocess.run(
            ["sh", "-c", command["command"]],  # noqa: S607 - whichever shell is there
            input=json.dumps({"hook_event_name": event}).encode(),
            check=True,
            capture_output=True,
        )
        assert (told.stdout, told.stderr) == (b"", b"")
        assert shlex.split(command["command"])[1:3] == ["-I", "-S"]
    events = [(each.event, each.raw["hook_event_name"]) for each in spool.take_batch()]
    assert events == [(f"claude-code:{event}", event) for event in commands(there)]


def test_an_agent_waits_for_every_hook(root: Path, variables: dict[str, str]) -> None:
    """What it does not wait for it ends with itself, and the last tools would not be counted."""
    there = settings_file("claude-code", root, variables, user=False)
    apply_plan(install("claude-code", there))
    assert not any("async" in command for command in commands(there).values())


def test_two_threads_may_install_at_once(root: Path, variables: dict[str, str]) -> None:
    """What is remembered of a file is written whole by each, and the last word is one of theirs."""
    there = settings_file("claude-code", root, variables, user=False)
    plan = install("claude-code", there)

    def again(_: int) -> None:
        for _ in range(50):
            apply_plan(plan)

    apply_plan(plan)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(again, range(8)))
    apply_plan(uninstall("claude-code", there))
    assert everything(root) == []
