"""The laws of adding worktrees, with git itself: one at a time, wholly or not at all."""

import fcntl
import os
import subprocess
import sys
from collections.abc import Callable
from errno import ENOLCK
from pathlib import Path

import pytest

from herdbook.adapters.git import worktrees
from herdbook.adapters.git.worktree_lock import NAME, worktree_lock
from herdbook.domain.errors import InvalidValue, StoreBusy, StoreUnavailable
from tests.unit.adapters.git_repositories import bare, commit, git, known, linked, made, settle

ADD = """
import sys
from herdbook.adapters.git import facts, worktrees
sys.stdin.readline()
worktrees.add(facts(sys.argv[1]), sys.argv[2], sys.argv[3])
"""

# A filter that ends the git that started it and the one that started that, the outermost first.
KILL = """
from itertools import takewhile
import psutil
shells = {"sh", "dash", "bash"}
above = takewhile(lambda each: each.name() in {"git", *shells}, psutil.Process().parents())
for each in reversed(list(above)):
    each.kill()
"""


@pytest.fixture(autouse=True)
def quiet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settle(monkeypatch, tmp_path / "the user's home")


def state(repository: Path) -> tuple[object, ...]:
    """What a refused call must leave as it is: branches, worktrees, config and files around."""
    return (
        git(repository, "for-each-ref"),
        git(repository, "worktree", "list", "--porcelain"),
        git(repository, "config", "--local", "--list"),
        sorted(path.name for path in repository.parent.iterdir()),
        sorted(str(path) for path in Path(known(repository).common_dir).glob("worktrees/*")),
    )


def test_a_new_branch_begins_at_head(tmp_path: Path) -> None:
    """Of the worktree where we are, not of the main one; and the facts are those of the new one."""
    repository = made(tmp_path / "repo")
    side = linked(repository, tmp_path / "side")
    head = commit(side, "further")
    added = worktrees.add(known(side), tmp_path / "new", "topic/new")
    assert added == known(tmp_path / "new")
    assert (added.top_level, added.branch) == (str(tmp_path / "new"), "topic/new")
    assert not added.is_main
    assert git(tmp_path / "new", "rev-parse", "HEAD").strip() == head


def test_a_new_branch_begins_at_its_base_and_follows_nothing(tmp_path: Path) -> None:
    """Any name of a commit will do, and no upstream is set."""
    repository = made(tmp_path / "repo")
    first = git(repository, "rev-parse", "HEAD").strip()
    git(repository, "update-ref", "refs/remotes/origin/main", first)
    commit(repository, "second")
    worktrees.add(known(repository), tmp_path / "new", "new", "origin/main")
    assert git(tmp_path / "new", "rev-parse", "HEAD").strip() == first
    assert "branch.new" not in git(repository, "config", "--local", "--list")


def test_a_branch_that_exists_is_checked_out_as_it_is(tmp_path: Path) -> None:
    """Also where a tag has the same name; into an empty folder too."""
    repository = made(tmp_path / "repo")
    git(repository, "branch", "old")
    head = git(repository, "rev-parse", "old").strip()
    commit(repository, "second")
    git(repository, "tag", "old")
    (tmp_path / "empty").mkdir()
    assert worktrees.add(known(repository), tmp_path / "empty", "old").branch == "old"
    assert git(tmp_path / "empty", "rev-parse", "HEAD").strip() == head


@pytest.mark.parametrize("name", ["-path", "two words", "Größe\n牛", os.fsdecode(b"\xff")])
def test_any_path_will_do(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No path is taken for an option or cut into pieces; one that is relative begins here."""
    repository = made(tmp_path / "repo")
    monkeypatch.chdir(tmp_path)
    assert worktrees.add(known(repository), name, "new").top_level == str(tmp_path / name)
    worktrees.remove(known(repository), name)
    assert not (tmp_path / name).exists()


def test_a_worktree_of_a_bare_repository_can_be_added_and_removed(tmp_path: Path) -> None:
    """From inside the bare one, and from the worktree itself that goes."""
    added = worktrees.add(known(bare(tmp_path)), tmp_path / "new", "new")
    assert (added.is_bare, added.is_main) == (True, False)
    worktrees.remove(added, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_hooks_variables_lead_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a hook of another repository is started with changes no worktree's answer."""
    repository, other = known(made(tmp_path / "repo")), made(tmp_path / "other")
    for name, path in (
        ("GIT_DIR", ".git"),
        ("GIT_INDEX_FILE", ".git/index"),
        ("GIT_WORK_TREE", "."),
    ):
        monkeypatch.setenv(name, str(other / path))
    added = worktrees.add(repository, tmp_path / "new", "new")
    assert added.common_dir == repository.common_dir
    assert [each.path for each in worktrees.list_worktrees(added)][1:] == [str(tmp_path / "new")]
    (tmp_path / "new" / "file").write_text("changed")
    assert not worktrees.is_clean(tmp_path / "new")
    worktrees.remove(repository, tmp_path / "new", force=True)
    assert git(other, "--git-dir", other / ".git", "worktree", "list").count("\n") == 1


REFUSED: dict[str, tuple[str, str, str | None, str]] = {
    "dash": ("new", "-b", None, "branch: '-b' is no name"),
    "empty name": ("new", "", None, "branch: '' is no name"),
    "bad name": ("new", "a..b", None, "branch: 'a..b' is no name"),
    "HEAD": ("new", "HEAD", None, "branch: 'HEAD' is no name"),
    "branch before": ("new", "@{-1}", None, "branch: '@{-1}' is no name"),
    "NUL": ("new", "a\0b", None, "branch: .* is no name"),
    "filled folder": ("side", "new", None, "path: the folder .*side' is there already and not"),
    "file": ("file", "new", None, "path: .*file' is there already and no folder"),
    "unencodable path": ("\ud800", "new", None, "path: .* holds a NUL, or what the system cannot"),
    "unencodable name": ("new", "\ud800", None, "git: a path or name holds a NUL, or what"),
    "empty path": ("", "new", None, "path: it must not be empty"),
    "base of a branch that exists": ("new", "old", "main", "base: the branch 'old' exists already"),
    "unknown base": ("new", "new", "nowhere", "base: 'nowhere' is not a commit"),
    "option as base": ("new", "new", "--all", "base: '--all' is not a commit"),
    "empty base": ("new", "new", "", "base: '' is not a commit"),
    "checked out elsewhere": ("new", "side", None, "worktree: 'side' is already checked out at"),
    "branch below a branch": ("new", "old/er", None, "worktree: .*old"),
}


@pytest.mark.parametrize(("name", "branch", "base", "reason"), REFUSED.values(), ids=REFUSED)
def test_a_worktree_that_cannot_be_added_is_refused_and_leaves_nothing(
    name: str, branch: str, base: str | None, reason: str, tmp_path: Path
) -> None:
    """The sentence names what was wrong, and the repository is as it was."""
    repository = made(tmp_path / "repo")
    linked(repository, tmp_path / "side")
    git(repository, "branch", "old")
    git(repository, "checkout", "--quiet", "-b", "before")
    git(repository, "checkout", "--quiet", "main")
    (tmp_path / "file").touch()
    before = state(repository)
    path = tmp_path / name if name else ""
    with pytest.raises(InvalidValue, match=reason.replace("{", r"\{")):
        worktrees.add(known(repository), path, branch, base)
    assert state(repository) == before


def test_a_repository_without_a_commit_says_so(tmp_path: Path) -> None:
    """No worktree can begin where nothing is."""
    repository = made(tmp_path / "repo", commits=0)
    with pytest.raises(InvalidValue, match="there is no commit yet at HEAD"):
        worktrees.add(known(repository), tmp_path / "new", "new")
    assert not (tmp_path / "new").exists()


def filtered(repository: Path, smudge: str) -> Path:
    """A repository whose checkouts go through this command, which must succeed."""
    made(repository)
    (repository / ".gitattributes").write_text("file filter=broken\n")
    git(repository, "add", ".gitattributes")
    git(repository, "commit", "--quiet", "-m", "filter")
    git(repository, "config", "filter.broken.smudge", smudge)
    git(repository, "config", "filter.broken.required", "true")
    return repository


def post_checkout(repository: Path, command: str) -> None:
    """Let git run a command at the end of every checkout, in the new worktree."""
    hook = repository / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\n{command}\n")
    hook.chmod(0o755)


def test_what_git_leaves_half_done_is_taken_back(tmp_path: Path) -> None:
    """When the checkout fails, neither folders nor the new branch stay."""
    repository = filtered(tmp_path / "repo", "false")
    before = state(repository)
    with pytest.raises(InvalidValue, match="worktree: file: smudge filter broken failed"):
        worktrees.add(known(repository), tmp_path / "deep" / "er" / "new", "new")
    assert state(repository) == before


def test_what_git_leaves_when_killed_is_taken_back(tmp_path: Path) -> None:
    """When git dies in the middle, neither folder nor branch nor lock stays."""
    (tmp_path / "kill.py").write_text(KILL)
    repository = filtered(tmp_path / "repo", f"'{sys.executable}' '{tmp_path / 'kill.py'}'")
    before = state(repository)
    with pytest.raises(StoreUnavailable, match="git cannot be used: it was ended by signal 9"):
        worktrees.add(known(repository), tmp_path / "new", "new")
    assert state(repository) == before


def test_a_hook_that_fails_after_all_is_done_takes_nothing_back(tmp_path: Path) -> None:
    """A post-checkout hook can complain, and the worktree stands."""
    repository = made(tmp_path / "repo")
    post_checkout(repository, "exit 1")
    assert worktrees.add(known(repository), tmp_path / "new", "new") == known(tmp_path / "new")


def test_twelve_processes_that_add_at_once_all_succeed(tmp_path: Path) -> None:
    """They queue: no two are ever inside git's work, where a hook of theirs looks for others."""
    repository = made(tmp_path / "repo")
    post_checkout(repository, "mkdir ../busy || touch ../overlap; sleep 0.05; rmdir ../busy")
    started = [
        subprocess.Popen(
            [sys.executable, "-c", ADD, repository, tmp_path / f"new{n}", f"topic{n}"],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for n in range(12)
    ]
    for process in started:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    complaints = [process.communicate()[1] for process in started]
    assert complaints == [""] * 12
    assert not (tmp_path / "overlap").exists()
    listed = worktrees.list_worktrees(known(repository))
    assert {each.branch for each in listed} == {"main", *(f"topic{n}" for n in range(12))}
    assert len({each.worktree_id for each in listed}) == 13
    assert all(worktrees.is_clean(each.path) for each in listed)


def test_patience_ends(tmp_path: Path) -> None:
    """While somebody else holds the lock, whatever writes gives up; then it goes on as before."""
    here = known(made(tmp_path / "repo"))
    calls: list[Callable[[float], object]] = [
        lambda patience: worktrees.add(here, tmp_path / "new", "new", patience=patience),
        lambda patience: worktrees.remove(here, tmp_path / "new", patience=patience),
        lambda patience: worktrees.prune(here, patience=patience),
    ]
    with worktree_lock(here.common_dir, 0.0):
        for call in calls:
            for patience in (0.0, 0.05):
                with pytest.raises(StoreBusy, match=f"{NAME} is held by another process"):
                    call(patience)
        assert len(worktrees.list_worktrees(here)) == 1
    for call in calls:
        call(60.0)


def test_a_repository_that_cannot_be_locked_is_said(tmp_path: Path) -> None:
    """The file that is needed and could not be opened is named, and nothing is added."""
    here = known(made(tmp_path / "repo"))
    (Path(here.common_dir) / NAME).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreUnavailable, match=f"{NAME} cannot be used: it is needed as a lock"):
        worktrees.add(here, tmp_path / "new", "new")
    assert not (tmp_path / "new").exists()


def test_a_filesystem_without_locks_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the system answers there is part of the sentence, and nothing is added."""

    def no_locks(_descriptor: int, _operation: int) -> None:
        raise OSError(ENOLCK, os.strerror(ENOLCK))

    here = known(made(tmp_path / "repo"))
    monkeypatch.setattr(fcntl, "flock", no_locks)
    with pytest.raises(StoreUnavailable, match=f"cannot be locked .{os.strerror(ENOLCK)}"):
        worktrees.add(here, tmp_path / "new", "new")
    assert not (tmp_path / "new").exists()
