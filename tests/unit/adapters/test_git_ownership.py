"""What is believed of a repository: whose it is, and that its worktree and it agree.

These tests run as any account. Where an owner has to differ, the account is changed under the
reader's feet, or git is told to take every owner for somebody else (as git's own tests do);
`tests/attacks` changes owners for real where it runs as root.
"""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from herdbook.adapters.git import (
    discovery,
    facts,
    find,
    folder_for_git,
    ownership,
    repository_root,
    worktrees,
)
from herdbook.adapters.git.config import NeedsGit
from tests.unit.adapters.git_repositories import (
    bare,
    below,
    embedded,
    git,
    known,
    linked,
    made,
    moved_by_hand,
    settle,
    worktree_apart,
)

SOMEBODY_ELSE = {"GIT_TEST_ASSUME_DIFFERENT_OWNER": "1"}


@pytest.fixture(autouse=True)
def quiet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settle(monkeypatch, tmp_path / "the user's home")


def found(folder: Path, **variables: str) -> tuple[bool, str | None]:
    """Whether a folder has facts, and the doubt about it."""
    answer = find(folder, environment={**os.environ, **variables})
    return answer.facts is not None, answer.problem


PATHS: dict[str, Callable[[Path], tuple[Path, list[Path]]]] = {
    "main": lambda f: (made(f / "repo"), [f / "repo", f / "repo" / ".git"]),
    "linked": lambda f: (
        linked(made(f / "repo"), f / "side"),
        [f / "side", f / "side" / ".git", f / "repo" / ".git" / "worktrees" / "side"],
    ),
}


@pytest.mark.parametrize("make", PATHS.values(), ids=PATHS)
def test_every_owner_that_git_compares_is_compared(
    make: Callable[[Path], tuple[Path, list[Path]]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One path of somebody else is enough to leave the judgement to git; a link is not followed."""
    folder, paths = make(tmp_path)
    real = os.lstat
    assert isinstance(discovery.discover(str(folder), os.environ), discovery.GitDirectories)
    for foreign in paths:

        def lstat(path: str, foreign: str = str(foreign)) -> os.stat_result:
            status = list(real(path))
            if path == foreign:
                status[4] += 1  # the owner
            return os.stat_result(status)

        with monkeypatch.context() as changed:
            changed.setattr(ownership.os, "lstat", lstat)
            with pytest.raises(NeedsGit):
                discovery.discover(str(folder), os.environ)


def test_the_effective_account_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it does for git; git then says what it thinks of the real one, which owns all this."""
    repository = made(tmp_path / "repo")
    monkeypatch.setattr(ownership.os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(NeedsGit):
        discovery.discover(str(repository), os.environ)
    assert facts(repository) is not None


@pytest.mark.parametrize("where", [".", "a/b", ".git"])
def test_a_repository_that_git_refuses_is_none_and_says_why(where: str, tmp_path: Path) -> None:
    """Git's reason in a sentence that something can follow on, without advice to run anything."""
    repository = made(tmp_path / "repo")
    below(repository)
    answer, doubt = found(repository / where, **SOMEBODY_ELSE)
    assert not answer
    named = repository / where if where == ".git" else repository
    assert doubt == (
        f"the repository at {named} belongs to another account "
        "(git's `safe.directory` setting can name it)"
    )


SETTINGS: dict[str, tuple[list[str], bool]] = {
    "nothing": ([], False),
    "all": (["*"], True),
    "the worktree": (["{repo}"], True),
    "the git directory": (["{repo}/.git"], False),
    "the folder above": (["{above}"], False),
    "taken back": (["{repo}", ""], False),
    "taken back and named": (["*", "", "{repo}"], True),
    "another": (["{repo}-not"], False),
}


@pytest.mark.parametrize("scope", ["global", "system", "command"])
@pytest.mark.parametrize(("values", "trusted"), SETTINGS.values(), ids=SETTINGS)
def test_safe_directory_counts_in_the_users_settings(
    values: list[str], trusted: bool, scope: str, tmp_path: Path
) -> None:
    """Wherever the user may set it, and as git reads it there."""
    repository = made(tmp_path / "repo")
    named = [each.format(repo=repository, above=tmp_path) for each in values]
    file = tmp_path / "settings"
    file.write_text("".join(f'[safe]\n\tdirectory = "{each}"\n' for each in named))
    variables = {"GIT_CONFIG_GLOBAL": str(file)}
    if scope == "system":
        variables = {"GIT_CONFIG_SYSTEM": str(file), "GIT_CONFIG_NOSYSTEM": "0"}
    elif scope == "command":
        variables = {"GIT_CONFIG_COUNT": str(len(named))}
        for number, each in enumerate(named):
            variables[f"GIT_CONFIG_KEY_{number}"] = "safe.directory"
            variables[f"GIT_CONFIG_VALUE_{number}"] = each
    answer, doubt = found(repository, **SOMEBODY_ELSE, **variables)
    assert (answer, doubt is None) == (trusted, trusted)


@pytest.mark.parametrize("value", ["{above}/*", "%(prefix)/{repo}", "{repo}/", "~/repo", "repo"])
def test_other_spellings_mean_what_this_git_takes_them_for(value: str, tmp_path: Path) -> None:
    """Versions differ in them, so the answer is compared with git's own."""
    repository = made(tmp_path / "repo")
    file = tmp_path / "settings"
    text = value.format(repo=repository, above=tmp_path)
    file.write_text(f'[safe]\n\tdirectory = "{text}"\n')
    variables = {**SOMEBODY_ELSE, "GIT_CONFIG_GLOBAL": str(file), "HOME": str(tmp_path)}
    env = [f"{name}={each}" for name, each in variables.items()]
    asked = shutil.which("env")
    assert asked is not None
    accepted = os.spawnv(  # noqa: S606 - git itself, started without any of our code
        os.P_WAIT, asked, [asked, *env, "git", "-C", str(repository), "rev-parse", "--quiet"]
    )
    assert found(repository, **variables)[0] == (accepted == 0)


def test_the_repositorys_own_word_for_itself_does_not_count(tmp_path: Path) -> None:
    """`safe.directory` in its config is nobody's but its owner's."""
    repository = made(tmp_path / "repo")
    git(repository, "config", "safe.directory", "*")
    assert found(repository, **SOMEBODY_ELSE)[0] is False


def test_a_repository_that_variables_name_is_the_users_choice(tmp_path: Path) -> None:
    """Git asks for no owner where GIT_DIR is set, and neither do we."""
    repository = made(tmp_path / "repo")
    assert found(repository, **SOMEBODY_ELSE, GIT_DIR=str(repository / ".git")) == (True, None)


@pytest.mark.parametrize("explicit", [False, True], ids=["all", "explicit"])
def test_a_bare_repository_counts_where_git_lets_it(explicit: bool, tmp_path: Path) -> None:
    """With `safe.bareRepository=explicit` only where it is named, or by one of its worktrees."""
    repository = bare(tmp_path)
    side = linked(repository, tmp_path / "side")
    (tmp_path / "settings").write_text(
        f"[safe]\n\tbareRepository = {'explicit' if explicit else 'all'}\n"
    )
    variables = {"GIT_CONFIG_GLOBAL": str(tmp_path / "settings")}
    answer, doubt = found(repository, **variables)
    assert answer is not explicit
    if explicit:
        assert doubt == (
            f"the bare repository at {repository} is not used "
            "(git's `safe.bareRepository` setting is `explicit`)"
        )
    assert found(side, **variables) == (True, None)
    assert found(repository, **variables, GIT_DIR=str(repository)) == (True, None)


@pytest.mark.parametrize("explicit", [False, True], ids=["all", "explicit"])
def test_worktrees_are_managed_whatever_git_allows_of_bare_ones(
    explicit: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From a worktree of a bare repository, and from an ordinary one."""
    places = [linked(bare(tmp_path), tmp_path / "side"), made(tmp_path / "repo")]
    if explicit:
        (tmp_path / "settings").write_text("[safe]\n\tbareRepository = explicit\n")
        monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "settings"))
    for number, place in enumerate(places):
        here = known(place)
        new = tmp_path / f"new{number}"
        assert worktrees.add(here, new, f"new{number}").top_level == str(new)
        assert str(new) in [each.path for each in worktrees.list_worktrees(here)]
        worktrees.remove(known(new), new)  # from the one that goes
        assert not new.exists()


@pytest.mark.parametrize("below_it", [".", "refs/heads", "sub/folder"])
@pytest.mark.parametrize("variables", [{}, {"GIT_CEILING_DIRECTORIES": "/nowhere"}], ids=str)
def test_a_bare_repository_in_a_worktree_is_a_folder_of_it(
    below_it: str, variables: dict[str, str], tmp_path: Path
) -> None:
    """Found by reading and by asking git, which takes it for a repository."""
    inner = embedded(tmp_path)
    (inner / "sub" / "folder").mkdir(parents=True)
    assert known(inner / below_it, **variables) == known(tmp_path / "repo", **variables)


def test_a_bare_repository_in_a_worktree_inside_a_bare_one_is_a_folder_of_it(
    tmp_path: Path,
) -> None:
    """Worktrees may lie in the folder of their own bare repository, and are worktrees there too."""
    outer = bare(tmp_path)
    side = linked(outer, outer / "side")
    shutil.copytree(embedded(tmp_path / "other"), side / "docs")
    assert known(side / "docs") == known(side)
    assert known(outer).top_level is None


def test_an_embedded_bare_repository_that_is_named_is_used(tmp_path: Path) -> None:
    """Whoever sets GIT_DIR means it."""
    inner = embedded(tmp_path)
    assert known(inner, GIT_DIR=str(inner)).common_dir == str(inner)


def test_a_folder_in_a_repository_of_somebody_else_is_not_saved_by_looking_bare(
    tmp_path: Path,
) -> None:
    """The repository around it decides."""
    answer, doubt = found(embedded(tmp_path), **SOMEBODY_ELSE)
    assert not answer
    assert "belongs to another account" in (doubt or "")


def claims_root(folder: Path) -> Path:
    repository = made(folder / "repo")
    git(repository, "config", "core.worktree", "/")
    return repository


def claims_root_from_a_linked_one(folder: Path) -> Path:
    """An archive: a `.git` file, and a git directory that calls the whole disk its worktree."""
    made(folder / "source")
    linked(folder / "source", folder / "work")
    (folder / "source" / ".git").rename(folder / "g")
    git(folder / "g", "config", "core.bare", "false")
    git(folder / "g", "config", "core.worktree", "/")
    (folder / "work" / ".git").write_text(f"gitdir: {folder / 'g' / 'worktrees' / 'work'}\n")
    return folder / "work"


def claims_root_by_its_own_config(folder: Path) -> Path:
    """A linked worktree whose own config file names another one."""
    side = linked(made(folder / "repo"), folder / "side")
    git(side, "config", "extensions.worktreeConfig", "true")
    git(side, "config", "--worktree", "core.worktree", "/")
    return side


def claims_another_repository(folder: Path) -> Path:
    """A folder whose `.git` names the git directory of somebody's repository."""
    made(folder / "victim")
    (folder / "work").mkdir()
    (folder / "work" / ".git").write_text(f"gitdir: {folder / 'victim' / '.git'}\n")
    return folder / "work"


def claims_another_worktree(folder: Path) -> Path:
    """A folder whose `.git` names the git directory of a worktree that is there."""
    side = linked(made(folder / "victim"), folder / "side")
    shutil.copytree(side, folder / "copy")
    return folder / "copy"


def leans_on_another_repository(folder: Path) -> Path:
    """A git directory that says it is a worktree's, of a repository that lies elsewhere."""
    made(folder / "victim")
    work = made(folder / "work")
    shutil.rmtree(work / ".git" / "objects")
    shutil.rmtree(work / ".git" / "refs")
    (work / ".git").rename(folder / "g")
    (folder / "g" / "commondir").write_text(f"{folder / 'victim' / '.git'}\n")
    (work / ".git").write_text(f"gitdir: {folder / 'g'}\n")
    return work


CLAIMS: dict[str, tuple[Callable[[Path], Path], str]] = {
    "the whole disk": (claims_root, "names / as its worktree, where no `.git` leads back"),
    "the whole disk, by its own config": (claims_root_by_its_own_config, "names / as its worktree"),
    "another repository": (claims_another_repository, "victim/.git, which does not belong to it"),
    "another worktree": (claims_another_worktree, "worktrees/side, which does not belong to it"),
    "another's objects": (leans_on_another_repository, "/g, which does not belong to it"),
}


@pytest.mark.parametrize(("make", "doubt"), CLAIMS.values(), ids=CLAIMS)
@pytest.mark.parametrize("ask", [{}, {"GIT_DISCOVERY_ACROSS_FILESYSTEM": "false"}], ids=str)
def test_a_worktree_that_only_one_side_claims_is_none(
    make: Callable[[Path], Path], doubt: str, ask: dict[str, str], tmp_path: Path
) -> None:
    """Read or asked: git works with these, and what is kept there reaches no further for it."""
    folder = make(tmp_path)
    answer = find(folder, environment={**os.environ, **ask})
    assert answer.facts is not None
    assert answer.facts.top_level is None
    assert doubt in (answer.problem or "")
    root = Path(repository_root(answer.facts))
    assert root in {tmp_path / "repo", tmp_path / "victim"}


def test_the_archive_of_a_linked_worktree_reaches_no_further_than_itself(tmp_path: Path) -> None:
    """Its folder is its worktree, and what stands for the repository is its git directory."""
    folder = claims_root_from_a_linked_one(tmp_path)
    here = known(folder)
    assert here.top_level == str(folder)
    assert repository_root(here) == str(tmp_path / "g")
    (tmp_path / "g" / "config").write_text(
        (tmp_path / "g" / "config").read_text() + "[user]\n\tname = a\tb\n"
    )
    assert repository_root(here) == str(tmp_path / "g")  # also where git has to read the config


@pytest.mark.parametrize("make", [worktree_apart, moved_by_hand])
def test_what_both_sides_agree_on_is_believed(make: Callable[[Path], Path], tmp_path: Path) -> None:
    """A worktree that leads back, and one that was moved away from where it was expected."""
    answer = find(make(tmp_path))
    assert answer.facts is not None
    assert answer.facts.top_level is not None
    assert answer.problem is None


def test_a_worktree_that_is_mounted_twice_is_one(tmp_path: Path) -> None:
    """A folder is compared, not its name."""
    side = linked(made(tmp_path / "repo"), tmp_path / "side")
    own = tmp_path / "repo" / ".git" / "worktrees" / "side"
    (tmp_path / "other name").symlink_to(side)
    (own / "gitdir").write_text(f"{tmp_path / 'other name' / '.git'}\n")
    assert known(side).top_level == str(side)


def test_git_finds_its_way_from_the_folder_that_facts_name(tmp_path: Path) -> None:
    """From a worktree its root, inside `.git` the folder around it, else the git directory."""
    repository = made(tmp_path / "repo")
    side = linked(repository, tmp_path / "side")
    deep = below(side)
    assert folder_for_git(known(deep)) == str(side)
    assert folder_for_git(known(repository / ".git" / "refs")) == str(repository)
    outer = bare(tmp_path)
    assert folder_for_git(known(outer / "refs")) == str(outer)
    variables = {"GIT_DIR": str(outer), "GIT_WORK_TREE": str(tmp_path)}
    assert folder_for_git(known(tmp_path, **variables)) == str(outer)
