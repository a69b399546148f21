"""The laws of listing, removing and pruning worktrees, with git itself."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from herdbook.adapters.git import pin, worktree_list, worktrees
from herdbook.domain.errors import HerdbookError, InvalidValue
from herdbook.domain.location.identity import worktree_id
from herdbook.ports.world.git import GitWorktree
from tests.unit.adapters.git_repositories import (
    bare,
    git,
    known,
    linked,
    made,
    separate,
    settle,
    with_submodule,
)


@pytest.fixture(autouse=True)
def quiet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settle(monkeypatch, tmp_path / "the user's home")


def only(listed: list[GitWorktree], path: Path) -> GitWorktree:
    """The worktree that is listed with this path."""
    (found,) = [each for each in listed if each.path == str(path)]
    return found


def test_all_worktrees_are_listed_with_what_git_knows(tmp_path: Path) -> None:
    """Path, branch, head, lock and reason to prune are git's; ids are those their facts give."""
    repository = made(tmp_path / "repo")
    side = linked(repository, tmp_path / "side")
    git(repository, "worktree", "add", "--quiet", "--detach", tmp_path / "loose")
    gone = linked(repository, tmp_path / "gone", "lost")
    ids = {path: worktree_id(known(path)) for path in (repository, side, gone)}
    git(repository, "worktree", "lock", "--reason", "on a\ndisk", side)
    git(repository, "worktree", "lock", tmp_path / "loose")
    gone.rename(tmp_path / "taken away")
    head = git(repository, "rev-parse", "HEAD").strip()
    own = Path(known(repository).git_dir)
    for stand in (repository, side):
        listed = worktrees.list_worktrees(known(stand))
        first = GitWorktree(
            path=str(repository),
            git_dir=str(own),
            branch="main",
            head=head,
            is_main=True,
            is_bare=False,
            locked=None,
            prunable=None,
            worktree_id=ids[repository],
        )
        second = first._replace(
            path=str(side),
            git_dir=str(own / "worktrees" / "side"),
            branch="side",
            is_main=False,
            locked="on a\ndisk",
            worktree_id=ids[side],
        )
        assert listed[0] == first
        assert only(listed, side) == second
        assert only(listed, tmp_path / "loose").branch is None
        assert only(listed, tmp_path / "loose").locked == ""
        assert only(listed, gone).worktree_id == ids[gone]
        assert "non-existent" in (only(listed, gone).prunable or "")
        assert len(listed) == 4


def test_older_listings_read_the_same(tmp_path: Path) -> None:
    """Lines that end with a newline, as before git 2.36, say what those that end with NUL say."""
    repository = made(tmp_path / "repo")
    side = linked(repository, tmp_path / "side")
    git(repository, "worktree", "lock", "--reason", 'a\n"b"\\\t\x01é!', side)
    plain = git(repository, "worktree", "list", "--porcelain")
    nul = git(repository, "worktree", "list", "--porcelain", "-z")
    records = worktree_list.parse_records(os.fsencode(nul), b"\0")
    assert worktree_list.parse_records(os.fsencode(plain), b"\n") == records
    assert records[1]["locked"] == 'a\n"b"\\\t\x01é!'


@pytest.mark.parametrize(
    ("make", "main"),
    [(bare, "bare.git"), (separate, "work"), (with_submodule, "super/part")],
    ids=["bare", "separate", "submodule"],
)
def test_the_main_worktree_is_listed_first_wherever_its_git_directory_is(
    make: Callable[[Path], Path], main: str, tmp_path: Path
) -> None:
    """It has the repository's own git directory, and a bare repository says that it is bare."""
    place = make(tmp_path)
    side = linked(place, tmp_path / "side")
    here = known(place)
    first, second = worktrees.list_worktrees(here)
    assert (first.path, first.is_main, first.is_bare) == (str(tmp_path / main), True, here.is_bare)
    assert first.worktree_id == worktree_id(here)
    assert (second.path, second.is_main, second.is_bare) == (str(side), False, False)
    assert second.worktree_id == worktree_id(known(side))


def test_a_listing_gives_the_pinned_id_and_none_for_a_damaged_pin(tmp_path: Path) -> None:
    """The pin counts more than what would be computed, and one bad pin hides no other worktree."""
    repository = made(tmp_path / "repo")
    side = linked(repository, tmp_path / "side")
    pin(known(side), "some-id", "0123456789ab")
    (Path(known(repository).git_dir) / "herdbook-worktree-id").write_text("damaged\n")
    first, second = worktrees.list_worktrees(known(side))
    assert (first.worktree_id, second.worktree_id) == (None, "0123456789ab")


def test_a_worktree_without_a_commit_has_no_head(tmp_path: Path) -> None:
    """Its branch is named all the same."""
    (only_one,) = worktrees.list_worktrees(known(made(tmp_path / "repo", commits=0)))
    assert (only_one.branch, only_one.head) == ("main", None)


@pytest.mark.parametrize("change", ["changed", "staged", "untracked"])
def test_a_worktree_with_changes_stays_unless_forced(change: str, tmp_path: Path) -> None:
    """It is not clean, removing it is refused without advising to use force, and force removes."""
    repository = made(tmp_path / "repo")
    side = linked(repository, tmp_path / "side")
    assert worktrees.is_clean(side)
    (side / ("other" if change == "untracked" else "file")).write_text("changed")
    if change == "staged":
        git(side, "add", "file")
    assert not worktrees.is_clean(side)
    with pytest.raises(InvalidValue, match="contains modified or untracked files") as caught:
        worktrees.remove(known(repository), side)
    assert "force" not in str(caught.value)
    assert "delete" not in str(caught.value)
    assert side.exists()
    worktrees.remove(known(repository), side, force=True)
    assert not side.exists()
    assert "side" in git(repository, "branch", "--list", "side")


def test_ignored_files_leave_a_worktree_clean(tmp_path: Path) -> None:
    """And being asked whether it is clean changes no file of its git directory."""
    repository = made(tmp_path / "repo")
    (repository / ".git" / "info" / "exclude").write_text("*.log\n")
    (repository / "x.log").touch()
    os.utime(repository / "file", (1, 1))
    index = (repository / ".git" / "index").read_bytes()
    assert worktrees.is_clean(repository)
    assert (repository / ".git" / "index").read_bytes() == index


def test_a_locked_worktree_stays_even_when_forced(tmp_path: Path) -> None:
    """Somebody locked it on purpose."""
    repository = made(tmp_path / "repo")
    side = linked(repository, tmp_path / "side")
    git(repository, "worktree", "lock", "--reason", "travelling", side)
    for force in (False, True):
        with pytest.raises(InvalidValue, match="locked working tree, lock reason: travelling"):
            worktrees.remove(known(repository), side, force=force)
    assert side.exists()


def test_what_is_no_worktree_cannot_be_removed(tmp_path: Path) -> None:
    """Neither the main worktree nor any other folder."""
    repository = made(tmp_path / "repo")
    (tmp_path / "folder").mkdir()
    for path in (repository, tmp_path / "folder", tmp_path / "nothing"):
        with pytest.raises(InvalidValue, match="working tree"):
            worktrees.remove(known(repository), path)
    assert (repository / "file").exists()


def test_pruning_forgets_what_is_gone_and_tells(tmp_path: Path) -> None:
    """Only worktrees without a folder go, and a locked one stays."""
    repository = made(tmp_path / "repo")
    for name in ("gone", "locked", "there"):
        linked(repository, tmp_path / name, name)
    git(repository, "worktree", "lock", tmp_path / "locked")
    for name in ("gone", "locked"):
        (tmp_path / name).rename(tmp_path / f"{name} elsewhere")
    here = known(repository)
    assert worktrees.prune(here) == [str(tmp_path / "gone")]
    assert worktrees.prune(here) == []
    assert {each.branch for each in worktrees.list_worktrees(here)} == {"main", "locked", "there"}


def test_cleanness_outside_any_repository_is_refused(tmp_path: Path) -> None:
    """There is nothing to be clean or not."""
    for path in (tmp_path, tmp_path / "nothing"):
        with pytest.raises(HerdbookError):
            worktrees.is_clean(path)
