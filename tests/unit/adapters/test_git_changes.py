"""What worktrees change against where they began, asked of real repositories."""

import os
from pathlib import Path

import pytest

from herdbook.adapters.git import changes
from herdbook.domain.errors import StoreBusy
from tests.unit.adapters.git_repositories import commit, git, linked, made, settle


@pytest.fixture
def root(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    settle(monkeypatch, tmp_path / "home")
    return made(tmp_path / "app")


def test_commits_are_found_by_name(root: Path) -> None:
    """What names none, or would be an option, is None."""
    head = git(root, "rev-parse", "HEAD").strip()
    for name in ("HEAD", "main", head[:10]):
        assert changes.commit_of(str(root), name, os.environ) == head
    for name in ("nothing", "", "--all", "HEAD:file", "a\0b"):
        assert changes.commit_of(str(root), name, os.environ) is None


def test_commits_differ_by_their_paths(root: Path, tmp_path: Path) -> None:
    """Since they went apart; a path may have any name, and a renamed file has two."""
    base = git(root, "rev-parse", "HEAD").strip()
    side = linked(root, tmp_path / "side")
    git(side, "mv", "file", "Größe\n牛")
    git(side, "commit", "--quiet", "-m", "renamed")
    head = git(side, "rev-parse", "HEAD").strip()
    main = commit(root, "meanwhile")
    assert changes.merge_base(str(side), main, head, os.environ) == base
    assert changes.changed_paths(str(side), base, head, os.environ) == {"file", "Größe\n牛"}
    assert changes.changed_paths(str(side), "0" * 40, head, os.environ) is None


def test_what_no_commit_has_is_told_file_by_file(root: Path) -> None:
    """Changed, staged and untracked ones, also in new folders, and none that is ignored."""
    (root / ".gitignore").write_text("ignored\n")
    (root / "file").write_text("changed")
    (root / "new").mkdir()
    for name in ("new/a", "new/b", "ignored"):
        (root / name).write_text("x")
    git(root, "add", "new/a")
    expected = {".gitignore", "file", "new/a", "new/b"}
    assert changes.uncommitted_paths(str(root), os.environ) == expected


def test_a_file_is_read_as_a_commit_has_it(root: Path) -> None:
    """None where it has none of that name."""
    before = git(root, "rev-parse", "HEAD").strip()
    text = (root / "file").read_text()
    commit(root, "another text")
    assert changes.text_at(str(root), before, "file", os.environ) == text
    for name in ("nothing", "", "a\0b"):
        assert changes.text_at(str(root), before, name, os.environ) is None


def test_a_git_that_does_not_answer_is_ended(
    root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """And the question is refused, as that to a busy store is."""
    program = tmp_path / "bin" / "git"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nexec sleep 600\n")
    program.chmod(0o755)
    monkeypatch.setattr(changes, "PATIENCE", 0.05)
    with pytest.raises(StoreBusy, match="slow to answer"):
        changes.commit_of(str(root), "HEAD", {**os.environ, "PATH": f"{program.parent}:/bin"})
