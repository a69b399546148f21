"""The laws of pinned identities, and of the machine's own."""

import multiprocessing
import os
import subprocess
import sys
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest

from herdbook.adapters.git import facts, pin
from herdbook.adapters.git.machine_id import machine_id, platform_uuid
from herdbook.domain.errors import InvalidValue, StoreUnavailable
from herdbook.domain.location.identity import GitFacts, repository_id, worktree_id
from tests.unit.adapters.git_repositories import commit, git, known, linked, made, settle

REPOSITORY_PIN = "herdbook-repository-id"
WORKTREE_PIN = "herdbook-worktree-id"
HEX = "0123456789ab"


@pytest.fixture(autouse=True)
def quiet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settle(monkeypatch, tmp_path / "the user's home")


def names(here: GitFacts) -> set[str]:
    """The names of what stands in the git directory."""
    return {path.name for path in Path(here.git_dir).iterdir()}


def test_a_pinned_identity_outlives_a_first_commit_and_a_new_remote(tmp_path: Path) -> None:
    """What was computed once stays, whatever it was computed from."""
    repository = made(tmp_path / "repo", origin=None, commits=0)
    before = known(repository)
    ids = (repository_id(before), worktree_id(before))
    assert pin(before, *ids) == ids
    commit(repository, "first")
    git(repository, "remote", "add", "origin", "https://forge.example/new")
    after = known(repository)
    assert (after.pinned_repository_id, after.pinned_worktree_id) == ids
    assert (repository_id(after), worktree_id(after)) == ids


def test_a_pin_that_stands_is_never_overwritten(tmp_path: Path) -> None:
    """Whoever comes later gets what the first one wrote."""
    here = known(made(tmp_path / "repo"))
    assert pin(here, "first-id", HEX) == ("first-id", HEX)
    assert pin(here, "second-id", HEX[::-1]) == ("first-id", HEX)
    assert (Path(here.common_dir) / REPOSITORY_PIN).read_text() == "first-id\n"


def test_worktrees_share_the_repositorys_pin_and_not_their_own(tmp_path: Path) -> None:
    """The repository's stands in the common git directory, a worktree's in its own."""
    repository = made(tmp_path / "repo")
    pin(known(repository), "shared-id", HEX)
    side = known(linked(repository, tmp_path / "side"))
    assert (side.pinned_repository_id, side.pinned_worktree_id) == ("shared-id", None)
    assert pin(side, "other-id", HEX[::-1]) == ("shared-id", HEX[::-1])
    assert known(repository).pinned_worktree_id == HEX
    assert (Path(side.git_dir) / WORKTREE_PIN).read_text() == HEX[::-1] + "\n"
    assert not (Path(side.git_dir) / REPOSITORY_PIN).exists()


def test_a_pin_may_be_read_by_all_who_may_read_the_repository(tmp_path: Path) -> None:
    """Its mode is that of git's own files, and no draft of it is left."""
    here = known(made(tmp_path / "repo"))
    before = names(here)
    umask = os.umask(0o022)
    try:
        pin(here, "some-id", HEX)
    finally:
        os.umask(umask)
    pins = names(here) - before
    assert pins == {REPOSITORY_PIN, WORKTREE_PIN}
    assert {(Path(here.git_dir) / name).stat().st_mode & 0o777 for name in pins} == {0o644}


def pin_with_the_others(
    here: GitFacts, number: int, ready: Barrier, answers: "Queue[tuple[str, str]]"
) -> None:
    """Pin ids of one's own as soon as everybody is there."""
    ready.wait()
    answers.put(pin(here, f"id-{number}", f"{number:012x}"))


def test_twenty_processes_that_pin_at_once_agree(tmp_path: Path) -> None:
    """All get one answer, and it is the one that stands in the files."""
    here = known(made(tmp_path / "repo"))
    context = multiprocessing.get_context("fork")
    ready, answers = context.Barrier(20), context.Queue()
    started = [
        context.Process(target=pin_with_the_others, args=(here, number, ready, answers))
        for number in range(20)
    ]
    for process in started:
        process.start()
    told = [answers.get(timeout=60) for _ in started]
    for process in started:
        process.join()
    after = known(tmp_path / "repo")
    assert set(told) == {(after.pinned_repository_id, after.pinned_worktree_id)}
    assert after.pinned_repository_id is not None


@pytest.mark.parametrize(
    "ids", [("", HEX), ("a b", HEX), ("x" * 65, HEX), ("good-id", "short"), ("good-id", "")]
)
def test_what_is_no_identity_is_never_pinned(ids: tuple[str, str], tmp_path: Path) -> None:
    """It is refused before anything is written."""
    here = known(made(tmp_path / "repo"))
    with pytest.raises(InvalidValue, match="pinned id"):
        pin(here, *ids)
    assert not {REPOSITORY_PIN, WORKTREE_PIN} & names(here)


def test_a_damaged_pin_is_never_taken_for_none(tmp_path: Path) -> None:
    """An empty file is no identity, and does not make room for another one."""
    here = known(made(tmp_path / "repo"))
    (Path(here.git_dir) / REPOSITORY_PIN).touch()
    assert known(tmp_path / "repo").pinned_repository_id == ""
    with pytest.raises(InvalidValue, match="pinned id"):
        pin(here, "good-id", HEX)


def test_a_pin_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    """What stands in its place is named, and not taken for a missing pin."""
    here = known(made(tmp_path / "repo"))
    (Path(here.git_dir) / REPOSITORY_PIN).mkdir()
    with pytest.raises(StoreUnavailable, match=f"{REPOSITORY_PIN} cannot be used: .* not be read"):
        facts(tmp_path / "repo")


def test_a_git_directory_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    """The error names the file that could not be written, for root as for everybody.

    Nobody can write to /proc, so a git directory there is as good as read-only.
    """
    here = known(made(tmp_path / "repo"))._replace(common_dir="/proc/self", git_dir="/proc/self")
    with pytest.raises(StoreUnavailable, match=f"{REPOSITORY_PIN} cannot be used: .* not be writ"):
        pin(here, "good-id", HEX)


def test_the_machines_own_id_is_taken_where_it_has_one(tmp_path: Path) -> None:
    """The first file that holds one counts; one that is not yet set up does not."""
    (tmp_path / "unset").write_text("uninitialized\n")
    (tmp_path / "set").write_text("f" * 32 + "\n")
    files = tuple(str(tmp_path / name) for name in ("missing", "unset", "set"))
    assert machine_id(files, "linux") == "f" * 32


def test_a_machine_without_an_id_gets_one_that_stays(tmp_path: Path) -> None:
    """It is made up once and kept with the user's state, by whichever process comes first."""
    script = (
        "from herdbook.adapters.git.machine_id import machine_id; print(machine_id((), 'linux'))"
    )
    started = [
        subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    told = {process.communicate()[0].strip() for process in started}
    assert told == {machine_id((), "linux")}
    assert (tmp_path / "the user's home" / ".state" / "herdbook" / "machine-id").exists()


def test_the_hardwares_uuid_is_found_in_what_macos_prints() -> None:
    """Without dashes and in lower case, it looks like any other machine's id."""
    printed = '  | {\n  "IOPlatformUUID" = "0A1B2C3D-0000-1111-2222-333344445555"\n  }\n'
    assert platform_uuid(printed) == "0a1b2c3d000011112222333344445555"
    assert platform_uuid("") is None
