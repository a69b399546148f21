"""`hooks install` before a person: the difference comes first, and only a yes changes something."""

import json
import os
import pty
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from herdbook.entrypoints.context import AppContext
from herdbook.entrypoints.operations.hooks.handlers import install
from herdbook.entrypoints.operations.hooks.views import changes
from tests.unit.entrypoints.terminals import Terminal

ASK = """
import os, sys
from pathlib import Path
from herdbook.entrypoints.context import AppContext
from herdbook.entrypoints.operations.hooks.handlers import install
from herdbook.entrypoints.operations.hooks.views import changes
here = AppContext.at(Path(sys.argv[1]), os.environ)
print(changes(install(here, target="codex", project=True, user=False, preview=False)))
"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))  # git's ignored files, too
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    root = tmp_path / "app"
    root.mkdir()
    return root


@pytest.mark.parametrize(("typed", "made"), [("y", True), ("", False), ("no", False)])
def test_at_a_terminal_a_person_sees_the_difference_and_decides(
    root: Path, typed: str, made: bool
) -> None:
    """Only a yes changes something, and the difference is shown once."""
    screen, line = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", ASK, str(root)], stdin=line, stdout=line, stderr=line
    )
    os.close(line)
    terminal = Terminal(screen, process)
    try:
        terminal.wait_for(r"\+\+\+ .*hooks\.json")
        terminal.wait_for(r"make this change\? \[y/N\] ")
        assert list(root.iterdir()) == []
        terminal.type(f"{typed}\n")
        assert terminal.end() == 0
    finally:
        process.kill()
        process.wait()
        os.close(screen)
    assert "+++" not in terminal.shown
    assert (root / ".codex" / "hooks.json").exists() is made
    assert ("nothing was changed" in terminal.shown) is not made


def test_a_program_is_told_the_difference_it_made(root: Path) -> None:
    """In an answer that goes into JSON, and on a screen that shows no control characters."""
    (root / ".codex").mkdir()
    (root / ".codex" / "hooks.json").write_text('{"a": "\x1b[31m"}')
    app = AppContext.at(root, os.environ)
    answer = install(app, target="codex", project=False, user=False, preview=False)
    assert json.loads(json.dumps(answer)) == answer
    text = changes(answer)
    assert "\x1b" not in text
    assert "+++ " in text
    assert f"changed {root}/.codex/hooks.json" in text
    assert "note: Codex skips" in text
    again = install(app, target="codex", project=False, user=False, preview=False)
    assert changes(again).startswith("nothing to change")


@pytest.mark.parametrize("ignored", [True, False])
def test_a_file_with_paths_that_git_would_commit_is_told(root: Path, ignored: bool) -> None:
    """It is for this machine alone."""
    git = shutil.which("git")
    assert git is not None
    subprocess.run([git, "init", "--quiet", str(root)], check=True)
    (root / ".gitignore").write_text("settings.local.json\n" if ignored else "\n")
    app = AppContext.at(root, os.environ)
    answer = install(app, target="claude-code", project=True, user=False, preview=True)
    assert bool(answer["notes"]) is not ignored
