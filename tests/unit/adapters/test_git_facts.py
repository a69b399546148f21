"""The laws of the facts about a folder: they are what git says, and most are read without it."""

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from herdbook.adapters.git import discovery, facts, repository_root
from herdbook.domain.errors import InvalidValue, StoreUnavailable
from herdbook.domain.location.identity import repository_id, worktree_id
from tests.unit.adapters.git_repositories import (
    ORIGIN,
    READ,
    SITUATIONS,
    Standing,
    bare,
    below,
    commit,
    configured,
    git,
    known,
    linked,
    made,
    separate,
    settle,
    shallow,
    with_submodule,
)

# Setting it to what it is anyway makes us leave the finding to git.
ASK = {"GIT_DISCOVERY_ACROSS_FILESYSTEM": "false"}

# What a hook runs: it writes down the facts about where it is.
TELL = """
import sys
from pathlib import Path
from herdbook.adapters.git import facts
Path(sys.argv[1]).write_text(repr(facts(".")))
"""


@pytest.fixture(autouse=True)
def quiet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settle(monkeypatch, tmp_path / "the user's home")


def said(folder: Path, variables: Mapping[str, str], *arguments: str) -> str | None:
    """What git itself answers there; None where it refuses."""
    ended = subprocess.run(
        ["git", *arguments],  # noqa: S607 - whichever git there is
        cwd=folder,
        env={**os.environ, **variables},
        check=False,
        capture_output=True,
    )
    return os.fsdecode(ended.stdout).removesuffix("\n") if ended.returncode == 0 else None


def real(folder: Path, path: str | None) -> str | None:
    return None if path is None else os.path.realpath(folder / path)


@pytest.mark.parametrize("situation", SITUATIONS.values(), ids=SITUATIONS)
def test_facts_are_what_git_says(situation: Callable[[Path], Standing], tmp_path: Path) -> None:
    """Directories, branch, bareness and origin are those that git names when asked one by one."""
    folder, variables = situation(tmp_path)
    found = known(folder, **variables)
    config = ("config", "--local", "--includes")
    branch = said(folder, variables, "symbolic-ref", "--quiet", "HEAD")
    urls = said(folder, variables, *config, "--get-all", "remote.origin.url")
    main_bare = said(Path(found.common_dir), {}, "config", "--type=bool", "core.bare")
    assert found.git_dir == said(folder, variables, "rev-parse", "--absolute-git-dir")
    assert found.common_dir == real(
        folder, said(folder, variables, "rev-parse", "--git-common-dir")
    )
    assert found.top_level == real(folder, said(folder, variables, "rev-parse", "--show-toplevel"))
    assert found.branch == (branch and branch.removeprefix("refs/heads/"))
    assert found.origin_url == (urls and urls.split("\n")[0])
    assert found.is_bare == (main_bare == "true")
    assert found.is_main == (found.git_dir == found.common_dir)


@pytest.mark.parametrize("situation", SITUATIONS.values(), ids=SITUATIONS)
def test_reading_the_files_and_asking_git_agree(
    situation: Callable[[Path], Standing], tmp_path: Path
) -> None:
    """Whichever way is taken, every fact is the same."""
    folder, variables = situation(tmp_path)
    assert known(folder, **variables) == known(folder, **variables, **ASK)


@pytest.mark.parametrize("situation", READ.values(), ids=READ)
def test_ordinary_places_need_no_process(situation: Callable[[Path], Path], tmp_path: Path) -> None:
    """With an origin, the facts are the same where there is no git program at all."""
    folder = situation(tmp_path)
    assert known(folder, PATH=str(tmp_path / "nothing here")) == known(folder)


def test_facts_import_neither_attrs_nor_what_starts_processes(tmp_path: Path) -> None:
    """A hook in an ordinary repository pays for nothing that it does not use."""
    made(tmp_path / "repo")
    script = (
        "import sys; from herdbook.adapters.git import facts; assert facts('.'); "
        "print(*{'attr', 'subprocess', 'pathlib', 'platformdirs'} & sys.modules.keys())"
    )
    command = [sys.executable, "-S", "-c", script]
    paths = os.pathsep.join(path for path in sys.path if path)
    environment = {**os.environ, "PYTHONPATH": paths}
    ended = subprocess.run(
        command, cwd=tmp_path / "repo", env=environment, check=True, capture_output=True, text=True
    )
    assert ended.stdout.strip() == ""


def test_a_folder_outside_any_repository_has_no_facts(tmp_path: Path) -> None:
    """None is the answer, read or asked, also beside an empty `.git` folder."""
    (tmp_path / ".git").mkdir()
    for folder in (tmp_path, below(tmp_path)):
        assert facts(folder) is None
        assert facts(folder, environment={**os.environ, **ASK}) is None


def test_a_ceiling_hides_the_repository_above_it(tmp_path: Path) -> None:
    """GIT_CEILING_DIRECTORIES counts as it does for git."""
    folder = below(made(tmp_path / "repo"))
    environment = {**os.environ, "GIT_CEILING_DIRECTORIES": str(folder.parent)}
    assert facts(folder, environment=environment) is None


def test_the_search_ends_where_another_filesystem_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A repository above a mount point is none of the folder's, as git has it."""
    folder = below(made(tmp_path / "repo"))
    mounted = {str(folder), str(folder.parent)}
    monkeypatch.setattr(discovery, "_device", lambda path: int(path in mounted))
    assert facts(folder) is None
    assert facts(tmp_path / "repo") is not None


def test_a_repository_that_does_not_say_is_bare_by_its_name(tmp_path: Path) -> None:
    """Without `core.bare`, one whose git directory is not called `.git` is; its worktrees agree."""
    repository = bare(tmp_path)
    git(repository, "config", "--unset", "core.bare")
    assert known(repository).is_bare
    assert known(linked(repository, tmp_path / "side")).is_bare


@pytest.mark.parametrize("name", ["nothing", "file", "with\0nul"])
def test_a_folder_that_cannot_be_entered_is_refused(name: str, tmp_path: Path) -> None:
    """A path without a folder is the caller's mistake, and named."""
    (tmp_path / "file").touch()
    with pytest.raises(InvalidValue, match="is no folder that can be entered"):
        facts(f"{tmp_path}/{name}")


def garbage(folder: Path) -> Standing:
    (folder / ".git").write_text("nonsense\n")
    return folder, {}


def dangling(folder: Path) -> Standing:
    (folder / ".git").write_text(f"gitdir: {folder}/gone\n")
    return folder, {}


DAMAGED: dict[str, tuple[Callable[[Path], Standing], str]] = {
    "garbage in .git": (garbage, "invalid gitfile format"),
    "dangling .git": (dangling, "not a git repository: .*gone"),
    "GIT_DIR to nowhere": (lambda f: (f, {"GIT_DIR": "gone"}), "not a git repository: 'gone'"),
    "later format": (
        lambda f: (configured(f, "[core]\nrepositoryformatversion = 99\n"), {}),
        "[Ee]xpected git repo version",
    ),
    "unknown extension": (
        lambda f: (
            configured(f, "[core]\nrepositoryformatversion=1\n[extensions]\nnovelty=x\n"),
            {},
        ),
        "unknown repository extension",
    ),
    "broken config": (lambda f: (configured(f, "[core\n"), {}), "bad config line"),
    "worktree gone": (
        lambda f: (configured(f, "[core]\n\tworktree = ../gone/gone\n"), {}),
        "gone",
    ),
}


@pytest.mark.parametrize(("damaged", "reason"), DAMAGED.values(), ids=DAMAGED)
def test_what_git_refuses_is_refused_with_gits_reason(
    damaged: Callable[[Path], Standing], reason: str, tmp_path: Path
) -> None:
    """A damaged or unknown repository is never taken for none."""
    folder, variables = damaged(tmp_path)
    with pytest.raises((InvalidValue, StoreUnavailable), match=reason) as caught:
        facts(folder, environment={**os.environ, **variables})
    assert "fatal" not in str(caught.value)


def test_a_missing_git_program_is_said(tmp_path: Path) -> None:
    """Where git has to be asked and there is none, the error names it."""
    repository = made(tmp_path / "repo", origin=None)
    with pytest.raises(StoreUnavailable, match="git cannot be used: the program git could not"):
        facts(repository, environment={"PATH": str(tmp_path)})


def test_without_an_origin_the_root_commits_name_the_repository(tmp_path: Path) -> None:
    """They are gathered only then, are those of the main HEAD, and need no worktree's agreement."""
    repository = made(tmp_path / "repo", origin=None, commits=0)
    assert known(repository).root_commits == ()
    root = commit(repository, "first")
    commit(repository, "second")
    side = linked(repository, tmp_path / "side")
    git(side, "checkout", "--quiet", "--orphan", "other")
    commit(side, "another root")
    assert known(repository).root_commits == (root,)
    assert known(side).root_commits == (root,)
    git(repository, "remote", "add", "origin", ORIGIN)
    assert known(repository).root_commits == ()


def test_a_shallow_clone_has_no_root_commits(tmp_path: Path) -> None:
    """Its first commit is where it was cut off."""
    assert known(shallow(tmp_path)).root_commits == ()


def test_an_empty_url_takes_back_those_before_it(tmp_path: Path) -> None:
    """As in newer versions of git, the list of URLs begins anew behind it."""
    text = '[remote "origin"]\n\turl =\n\turl = https://forge.example/after\n'
    assert known(configured(tmp_path, text)).origin_url == "https://forge.example/after"


def test_clones_by_different_spellings_are_one_repository(tmp_path: Path) -> None:
    """The id is the same over ssh and https, and in every worktree."""
    spellings = [ORIGIN, "git@forge.example:team/tool", "ssh://me@forge.example:22/team/tool.git/"]
    clones = [made(tmp_path / f"clone{n}", origin=url) for n, url in enumerate(spellings)]
    places = [*clones, linked(clones[0], tmp_path / "side"), below(clones[1])]
    assert len({repository_id(known(place)) for place in places}) == 1


def test_a_worktree_keeps_its_id_when_it_moves(tmp_path: Path) -> None:
    """`git worktree move` changes the path and nothing else."""
    repository = made(tmp_path / "repo")
    before = known(linked(repository, tmp_path / "side"))
    git(repository, "worktree", "move", tmp_path / "side", tmp_path / "moved")
    after = known(tmp_path / "moved")
    assert after.top_level == str(tmp_path / "moved")
    assert worktree_id(after) == worktree_id(before) != worktree_id(known(repository))


def test_real_hooks_find_the_place_they_run_for(tmp_path: Path) -> None:
    """In commits to the main and to a linked worktree, and in a push to a bare repository."""
    server = bare(tmp_path)
    repository = made(tmp_path / "repo", origin=str(server))
    side = linked(repository, tmp_path / "side")
    (tmp_path / "tell.py").write_text(TELL)
    for place, name in ((server, "pre-receive"), (repository, "pre-commit")):
        hook = Path(known(place).common_dir) / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        words = (sys.executable, tmp_path / "tell.py", tmp_path / "told")
        hook.write_text("#!/bin/sh\nexec " + " ".join(f"'{word}'" for word in words) + "\n")
        hook.chmod(0o755)
    for place in (repository, side):
        before = known(place)
        commit(place, "again")
        assert (tmp_path / "told").read_text() == repr(before)
        (tmp_path / "told").unlink()
    git(repository, "push", "--quiet", "origin", "main:pushed")
    assert (tmp_path / "told").read_text() == repr(known(server))


@pytest.mark.parametrize(
    ("make", "root"),
    [
        (lambda f: made(f / "repo"), "repo"),
        (bare, "bare.git"),
        (separate, "store"),
        (with_submodule, "super/part"),
    ],
    ids=["main", "bare", "separate", "submodule"],
)
def test_all_worktrees_name_one_root(
    make: Callable[[Path], Path], root: str, tmp_path: Path
) -> None:
    """The folder that stands for a repository is the same wherever in it somebody stands."""
    place = make(tmp_path)
    side = linked(place, tmp_path / "side")
    inside = Path(known(place).common_dir) / "refs"
    roots = {repository_root(known(each)) for each in (place, side, inside)}
    assert roots == {str(tmp_path / root)}
