"""Git's hooks with real git: all worktrees are covered, what was there is chained."""

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from herdbook.adapters.user_state import spool
from herdbook.domain.errors import InvalidValue
from herdbook.entrypoints.hooks.file_changes import apply_plan
from herdbook.entrypoints.hooks.git_hooks import BACKUP_SUFFIX, HOOKS, install, uninstall
from tests.unit.entrypoints.records import OUT_OF_REACH

PYTHON = f"#!{sys.executable}"
WITNESS_IN_PYTHON = """
import os, sys
told = sys.stdin.read().split() if sys.argv[1:] else []
last = told if sys.argv[1:] == ["amend"] else told[1:2]
with open(os.environ["WITNESS"], "a") as file:
    print(*sys.argv[1:2], *last, file=file)
"""
WITNESS = 'echo "$(basename "$0") $(dirname "$0" | xargs basename) $*" >> "$WITNESS"'


class Repository:
    """A repository with a remote, and somebody who works in it."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "app"
        self.witness = folder / "witness"
        self.variables = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder / "home"),
            "XDG_STATE_HOME": str(folder / "state"),
            "HERDBOOK_RECORD": OUT_OF_REACH,
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "WITNESS": str(self.witness),
            **{
                f"GIT_{role}_{what}": "somebody@example.com"
                for role in ("AUTHOR", "COMMITTER")
                for what in ("NAME", "EMAIL")
            },
        }
        self.root.mkdir()
        self.git("init", "--quiet", "--initial-branch=main")
        self.git("init", "--quiet", "--bare", str(folder / "remote.git"))
        self.git("remote", "add", "origin", str(folder / "remote.git"))
        self.hooks = self.root / ".git" / "hooks"

    def tries(self, *words: str, at: Path | None = None) -> subprocess.CompletedProcess[str]:
        git = shutil.which("git")
        assert git is not None
        return subprocess.run(
            [git, *words],
            cwd=at or self.root,
            env=self.variables,
            capture_output=True,
            text=True,
            check=False,
        )

    def git(self, *words: str, at: Path | None = None) -> str:
        told = self.tries(*words, at=at)
        assert told.returncode == 0, told.stderr
        return told.stdout.strip()

    def commit(self, *words: str, at: Path | None = None) -> str:
        """Commit and give the new hash; git must have nothing to complain of."""
        told = self.tries("commit", "--quiet", "--allow-empty", "-m", "x", *words, at=at)
        assert (told.returncode, told.stderr) == (0, "")
        return self.git("rev-parse", "HEAD", at=at)

    def install(self) -> None:
        apply_plan(install(self.root, self.variables))

    def hook(self, name: str, text: str, folder: Path | None = None) -> Path:
        """Let there be a hook of somebody's."""
        path = (folder or self.hooks) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
        return path

    def seen(self) -> list[str]:
        return self.witness.read_text().splitlines() if self.witness.exists() else []


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return Repository(tmp_path)


def everything(folder: Path) -> dict[str, tuple[int, bytes | str]]:
    return {
        path.name: (
            stat.S_IMODE(path.lstat().st_mode),
            str(path.readlink()) if path.is_symlink() else path.read_bytes(),
        )
        for path in folder.iterdir()
    }


def test_a_commit_is_told_with_its_hash(app: Repository) -> None:
    """Though the flush may come long after."""
    app.install()
    one = app.commit()
    two = app.commit()
    assert [(each.event, each.raw) for each in spool.take_batch()] == [
        ("post-commit", {"commit": one}),
        ("post-commit", {"commit": two}),
    ]
    assert {each.cwd for each in spool.take_batch()} == {str(app.root)}


def test_one_install_covers_all_worktrees(app: Repository, tmp_path: Path) -> None:
    """Those that are there and those that come, wherever it was called."""
    app.commit()
    app.git("worktree", "add", "--quiet", str(tmp_path / "early"))
    (tmp_path / "early" / "sub").mkdir()
    apply_plan(install(tmp_path / "early" / "sub", app.variables))
    app.git("worktree", "add", "--quiet", str(tmp_path / "late"))
    hashes = [app.commit(at=each) for each in (app.root, tmp_path / "early", tmp_path / "late")]
    events = list(spool.take_batch())
    assert [each.raw["commit"] for each in events] == hashes
    assert [Path(each.cwd).name for each in events] == ["app", "early", "late"]


def test_amending_and_pushing_are_told(app: Repository) -> None:
    """With what git says about them on standard input."""
    app.install()
    old = app.commit()
    new = app.commit("--amend")
    app.git("push", "--quiet", "origin", "main")
    events = {each.event: each.raw for each in spool.take_batch()}
    assert events["post-rewrite"] == {"arguments": ["amend"], "input": f"{old} {new}\n"}
    assert events["pre-push"].split()[:3] == ["refs/heads/main", new, "refs/heads/main"]


def test_the_address_of_a_remote_is_not_kept(app: Repository) -> None:
    """It may hold a password."""
    app.install()
    app.commit()
    app.git("push", "--quiet", f"file://{app.root.parent}/remote.git", "main")
    (push,) = [each for each in spool.take_batch() if each.event == "pre-push"]
    assert "remote.git" not in str(push)


@pytest.mark.parametrize(
    "first",
    ["#!/bin/sh", "#!/bin/sh -eu", "#!/usr/bin/env bash", "#! /bin/bash", "", PYTHON],
    ids=["sh", "strict", "env", "bash", "none", "python"],
)
def test_a_hook_that_is_there_is_called_as_before(app: Repository, first: str) -> None:
    """With its name, its folder, its arguments and its input, in its own language."""
    script = f"{first}\n{WITNESS}\n" if first else f"{WITNESS}\n"
    reading = 'while read -r line; do echo "in $line" >> "$WITNESS"; done\n'
    if first == PYTHON:
        script, reading = f"{first}\n{WITNESS_IN_PYTHON}\n", ""
    for name in HOOKS:
        app.hook(name, script + (reading if name != "post-commit" else ""))
    app.install()
    old = app.commit()
    new = app.commit("--amend")
    app.git("push", "--quiet", "origin", "main")
    seen = app.seen()
    if first == PYTHON:
        assert seen == ["", "", f"amend {old} {new}", f"origin {new}"]
    else:
        remote = app.root.parent / "remote.git"
        zero = "0" * 40
        assert [each.strip() for each in seen] == [
            "post-commit hooks",
            "post-commit hooks",
            "post-rewrite hooks amend",
            f"in {old} {new}",
            f"pre-push hooks origin {remote}",
            f"in refs/heads/main {new} refs/heads/main {zero}",
        ]
    assert len(spool.take_batch().events) == 4


@pytest.mark.parametrize("first", ["#!/bin/sh", PYTHON], ids=["sh", "python"])
def test_a_hook_that_forbids_a_push_still_forbids_it(app: Repository, first: str) -> None:
    """Its exit code is the one that counts."""
    app.hook("pre-push", f"{first}\n{'raise SystemExit(3)' if first == PYTHON else 'exit 3'}\n")
    app.install()
    app.commit()
    assert app.tries("push", "--quiet", "origin", "main").returncode != 0
    assert [each.event for each in spool.take_batch()] == ["post-commit", "pre-push"]


def test_a_hook_that_git_does_not_call_is_not_called_by_us(app: Repository) -> None:
    """One that is not executable."""
    app.hook("post-commit", f"#!/bin/sh\n{WITNESS}\n").chmod(0o644)
    app.install()
    app.commit()
    assert app.seen() == []


def test_where_python_is_gone_a_commit_is_made_all_the_same(
    app: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the hook that was there is called."""
    app.hook("post-commit", f"#!/bin/sh\n{WITNESS}\n")
    monkeypatch.setattr("sys.executable", "/no/such/python")
    app.install()
    app.commit()
    app.git("push", "--quiet", "origin", "main")
    assert len(app.seen()) == 1
    assert spool.take_batch().events == []


def test_uninstalling_gives_back_exactly_what_was_there(app: Repository, tmp_path: Path) -> None:
    """Files with their modes, and links as links; installing twice is installing once."""
    target = tmp_path / "shared-hook"
    target.write_text(f"#!/bin/sh\n{WITNESS}\n")
    target.chmod(0o755)
    app.hook("post-commit", "#!/bin/sh\nexit 0\n").chmod(0o700)
    (app.hooks / "post-rewrite").symlink_to(target)
    before = everything(app.hooks)
    app.install()
    installed = everything(app.hooks)
    assert install(app.root, app.variables).changes == []
    app.install()
    assert everything(app.hooks) == installed
    app.commit()
    app.commit("--amend")
    assert [each.split()[0] for each in app.seen()] == ["post-rewrite"]
    apply_plan(uninstall(app.root, app.variables))
    assert everything(app.hooks) == before
    assert target.read_text() == f"#!/bin/sh\n{WITNESS}\n"
    assert uninstall(app.root, app.variables).changes == []


def test_a_hook_that_somebody_changed_since_is_left_as_it_is(app: Repository) -> None:
    """Uninstalling says so."""
    app.install()
    path = app.hooks / "post-commit"
    path.write_text(path.read_text() + "echo mine\n")
    plan = uninstall(app.root, app.variables)
    apply_plan(plan)
    assert any(str(path) in note for note in plan.notes)
    assert path.read_text().endswith("echo mine\n")
    assert not (app.hooks / "pre-push").exists()


def test_what_was_kept_is_never_written_over(app: Repository) -> None:
    """Another program may have put its hook in the place of ours."""
    app.hook("post-commit", "#!/bin/sh\n# first\n")
    app.install()
    app.hook("post-commit", "#!/bin/sh\n# second\n")
    with pytest.raises(InvalidValue, match="Nothing was changed"):
        app.install()
    assert "first" in (app.hooks / f"post-commit{BACKUP_SUFFIX}").read_text()
    assert "second" in (app.hooks / "post-commit").read_text()


def test_hooks_in_a_folder_of_the_project_name_no_path_of_this_machine(app: Repository) -> None:
    """They may be committed; core.hooksPath says where they are."""
    mine = app.hook("post-commit", f"#!/bin/sh\n{WITNESS}\n", app.root / ".githooks")
    app.git("config", "core.hooksPath", ".githooks")
    plan = install(app.root, app.variables)
    apply_plan(plan)
    text = mine.read_text()
    assert "herdbook hook post-commit" in text
    assert str(app.root.parent) not in text
    assert "/python" not in text
    assert any("PATH" in note for note in plan.notes)
    app.commit()
    assert len(app.seen()) == 1
    assert not (app.hooks / "post-commit").exists()


def test_hooks_in_a_folder_elsewhere_are_chained_there(app: Repository, tmp_path: Path) -> None:
    """Where git looks for them by the user's own setting is where ours are."""
    app.hook("post-commit", f"#!/bin/sh\n{WITNESS}\n", tmp_path / "all hooks")
    config = tmp_path / "gitconfig"
    config.write_text(f'[core]\n\thooksPath = "{tmp_path / "all hooks"}"\n')
    app.variables["GIT_CONFIG_GLOBAL"] = str(config)
    app.install()
    new = app.commit()
    assert len(app.seen()) == 1
    assert [each.raw for each in spool.take_batch()] == [{"commit": new}]


def test_outside_a_repository_there_is_nothing_to_install_into(
    app: Repository, tmp_path: Path
) -> None:
    """Git says so, and so do we."""
    with pytest.raises(InvalidValue, match="not a git repository"):
        install(tmp_path, app.variables)
