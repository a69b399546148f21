"""Real repositories for the tests of the git adapter, made by git itself.

`SITUATIONS` are places where somebody may stand, each made in an empty folder; a situation gives
the folder to stand in, and the variables that are set there.
"""

import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from herdbook.adapters.git import facts
from herdbook.domain.location.identity import GitFacts

ORIGIN = "https://forge.example/team/tool.git"

Standing = tuple[Path, Mapping[str, str]]


def settle(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    """Let git and Herdbook know nothing of the user and of whoever runs the tests."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    home.mkdir(exist_ok=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(home / ".state"))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "Herd Tester")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "tester@herd.example")
        monkeypatch.setenv(f"GIT_{role}_DATE", "2026-01-02T03:04:05Z")


def git(folder: Path, *arguments: str | Path) -> str:
    """What git prints, run in a folder; it must succeed."""
    command = ["git", "-C", str(folder), *map(str, arguments)]
    return os.fsdecode(subprocess.run(command, check=True, capture_output=True).stdout)


def known(folder: str | Path, **variables: str) -> GitFacts:
    """The facts about a place that must be in a repository, with these variables set."""
    found = facts(folder, environment={**os.environ, **variables})
    assert found is not None
    return found


def made(folder: Path, *, origin: str | None = ORIGIN, commits: int = 1) -> Path:
    """A repository with a worktree, on the branch `main`."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "--quiet")
    git(folder, "symbolic-ref", "HEAD", "refs/heads/main")
    if origin is not None:
        git(folder, "remote", "add", "origin", origin)
    for number in range(commits):
        commit(folder, f"commit {number} of {folder.name!a}")
    return folder


def commit(folder: Path, message: str) -> str:
    """Commit a file; the commit's hash."""
    (folder / "file").write_text(message)
    git(folder, "add", "file")
    git(folder, "commit", "--quiet", "-m", message)
    return git(folder, "rev-parse", "HEAD").strip()


def linked(repository: Path, path: Path, branch: str = "side") -> Path:
    """A linked worktree made by git alone."""
    git(repository, "worktree", "add", "--quiet", "-b", branch, path)
    return path


def below(folder: Path) -> Path:
    """A folder further down."""
    deep = folder / "a" / "b"
    deep.mkdir(parents=True)
    return deep


def bare(folder: Path, name: str = "bare.git") -> Path:
    """A bare repository with a commit and an origin."""
    source = made(folder / "source")
    git(folder, "clone", "--quiet", "--bare", source, folder / name)
    return folder / name


def with_submodule(folder: Path) -> Path:
    """A submodule's worktree, inside the repository `super`."""
    inner = made(folder / "inner", origin=None)
    outer = made(folder / "super")
    allow = ("-c", "protocol.file.allow=always")
    git(outer, *allow, "submodule", "--quiet", "add", inner, "part")
    return outer / "part"


def configured(folder: Path, text: str) -> Path:
    """A repository in whose config this stands at the end."""
    repository = made(folder / "repo")
    with (repository / ".git" / "config").open("a") as config:
        config.write(text)
    return repository


def included(folder: Path, section: str) -> Path:
    """A repository that takes its origin from a file it includes."""
    (folder / "more").write_text('[remote "origin"]\n\turl = https://forge.example/included\n')
    repository = made(folder / "repo", origin=None)
    with (repository / ".git" / "config").open("a") as config:
        config.write(f"{section}\n\tpath = {folder / 'more'}\n")
    return repository


def separate(folder: Path) -> Path:
    """A worktree whose git directory lies elsewhere."""
    (folder / "work").mkdir()
    git(folder / "work", "init", "--quiet", "--separate-git-dir", folder / "store", ".")
    commit(folder / "work", "first")
    return folder / "work"


def detached(folder: Path) -> Path:
    repository = made(folder / "repo")
    git(repository, "checkout", "--quiet", "--detach")
    return repository


def by_worktree(folder: Path) -> Path:
    """A linked worktree of a bare repository that keeps `core.bare` for itself alone."""
    repository = bare(folder, "project/.git")
    git(repository, "config", "extensions.worktreeConfig", "true")
    git(repository, "config", "--unset", "core.bare")
    git(repository, "config", "--worktree", "core.bare", "true")
    return linked(repository, folder / "side")


def symlinked(folder: Path) -> Path:
    below(made(folder / "repo"))
    (folder / "link").symlink_to(folder / "repo" / "a")
    return folder / "link" / "b"


def git_dir_symlinked(folder: Path) -> Path:
    repository = made(folder / "repo")
    (repository / ".git").rename(folder / "elsewhere")
    (repository / ".git").symlink_to(folder / "elsewhere")
    return repository


def named(name: bytes) -> Callable[[Path], Path]:
    """A linked worktree of a repository, both in folders of this name."""
    return lambda folder: linked(
        made(folder / os.fsdecode(name) / "repo"), folder / os.fsdecode(name) / "side"
    )


def head_as_a_link(folder: Path) -> Path:
    """A repository whose HEAD is a symbolic link, as git once made them."""
    repository = made(folder / "repo")
    (repository / ".git" / "HEAD").unlink()
    (repository / ".git" / "HEAD").symlink_to("refs/heads/main")
    return repository


def shallow(folder: Path) -> Path:
    source = made(folder / "source", commits=2)
    git(folder, "clone", "--quiet", "--depth=1", source.as_uri(), folder / "clone")
    git(folder / "clone", "remote", "remove", "origin")
    return folder / "clone"


def partial(folder: Path) -> Path:
    """A clone that has no files but those of its worktree."""
    source = made(folder / "source", commits=2)
    git(source, "config", "uploadpack.allowFilter", "true")
    git(folder, "clone", "--quiet", "--filter=blob:none", source.as_uri(), folder / "clone")
    return folder / "clone"


def without_origin(repository: Path) -> Path:
    git(repository, "remote", "remove", "origin")
    return repository


def unsaid(folder: Path) -> Path:
    """A repository that does not say whether it is bare."""
    repository = made(folder / "repo")
    git(repository, "config", "--unset", "core.bare")
    return repository


def longer_hashes(folder: Path) -> Path:
    git(folder, "init", "--quiet", "--object-format=sha256", "repo")
    return folder / "repo"


def worktree_apart(folder: Path) -> Path:
    """A repository whose config names a worktree elsewhere, which leads back to it."""
    repository = made(folder / "repo")
    (folder / "apart").mkdir()
    (folder / "apart" / ".git").write_text(f"gitdir: {repository / '.git'}\n")
    git(repository, "config", "core.worktree", "../../apart")
    return repository


def moved_by_hand(folder: Path) -> Path:
    """A linked worktree that somebody moved without telling git."""
    side = linked(made(folder / "repo"), folder / "side")
    return side.rename(folder / "moved")


def embedded(folder: Path, *, within: str = "docs") -> Path:
    """A folder of a worktree that looks like a bare repository: ordinary files of a commit."""
    repository = made(folder / "repo")
    inner = repository / within
    for name in ("objects", "refs/heads"):
        (inner / name).mkdir(parents=True)
    (inner / "HEAD").write_text("ref: refs/heads/main\n")
    (inner / "config").write_text("[core]\n\tbare = true\n")
    return inner


def empty_git_folder_inside(folder: Path) -> Path:
    """A folder with an empty `.git`, inside a repository: git looks further up."""
    inside = below(made(folder / "repo"))
    (inside / ".git").mkdir()
    return inside


def in_a_hook(folder: Path) -> Standing:
    """A linked worktree as a hook of `git commit` sees it."""
    side = linked(made(folder / "repo"), folder / "side")
    own = folder / "repo" / ".git" / "worktrees" / "side"
    return side, {"GIT_DIR": str(own), "GIT_INDEX_FILE": str(own / "index"), "GIT_PREFIX": ""}


def with_common_dir(folder: Path) -> Standing:
    side, variables = in_a_hook(folder)
    return side, {**variables, "GIT_COMMON_DIR": str(folder / "repo" / ".git")}


def dotfiles(folder: Path) -> Standing:
    """A bare repository over a worktree that only variables name."""
    repository = bare(folder)
    (folder / "home").mkdir(exist_ok=True)
    variables = {"GIT_DIR": str(repository), "GIT_WORK_TREE": str(folder / "home")}
    return folder / "home", variables


# Found by reading git's files alone.
READ: dict[str, Callable[[Path], Path]] = {
    "main worktree": lambda folder: made(folder / "repo"),
    "sub-directory": lambda folder: below(made(folder / "repo")),
    "symlinked spelling": symlinked,
    "linked worktree": lambda folder: linked(made(folder / "repo"), folder / "side"),
    "below a linked worktree": lambda f: below(linked(made(f / "repo"), f / "side")),
    "beside a bare one called .git": lambda folder: bare(folder, "project/.git").parent,
    "worktree of a bare one": lambda folder: linked(bare(folder), folder / "side"),
    "repository inside a repository": lambda f: made(made(f / "repo") / "inner" / "repo"),
    "detached": detached,
    "without a commit": lambda folder: made(folder / "repo", commits=0),
    "core.worktree": worktree_apart,
    "beside core.worktree": lambda folder: worktree_apart(folder).with_name("apart"),
    "moved by hand": moved_by_hand,
    "git dir symlinked": git_dir_symlinked,
    "head as a link": head_as_a_link,
    "empty .git inside": empty_git_folder_inside,
    "blanks in the path": named(b" two  blanks "),
    "newlines in the path": named(b"a\nb\n\nc\n"),
    "non-ASCII path": named("Größe 牛".encode()),
    "path that is no text": named(b"\xff\xfe"),
    "several urls": lambda f: configured(f, '[remote "origin"]\n\turl = second\n'),
    "no core.bare": unsaid,
    "CRLF and a comment": lambda f: configured(f, "[user] ; mine\r\n\tname = x\r\n"),
}

# Git has to be asked for something: the root commits, or what its files leave open, or what the
# user's settings allow.
ASKED: dict[str, Callable[[Path], Path]] = {
    "bare": bare,
    "inside a bare one": lambda folder: bare(folder) / "refs" / "heads",
    "inside .git": lambda folder: made(folder / "repo") / ".git" / "refs",
    "inside a linked git dir": lambda folder: (
        linked(made(folder / "repo"), folder / "side").parent / "repo" / ".git/worktrees/side"
    ),
    "inside .git, no core.bare": lambda folder: unsaid(folder) / ".git" / "refs",
    "worktree in a bare one": lambda folder: linked(repo := bare(folder), repo / "side"),
    "bare inside a bare one": lambda folder: bare(bare(folder)),
    "bare, without an origin": lambda folder: without_origin(bare(folder)),
    "worktree of a bare one, without an origin": lambda folder: without_origin(
        linked(bare(folder), folder / "side")
    ),
    "partial clone": partial,
    "partial clone, without an origin": lambda folder: without_origin(partial(folder)),
    "without an origin": lambda folder: made(folder / "repo", origin=None, commits=2),
    "linked, without an origin": lambda f: linked(made(f / "repo", origin=None), f / "side"),
    "neither origin nor commit": lambda folder: made(folder / "repo", origin=None, commits=0),
    "submodule": with_submodule,
    "inside a submodule's git dir": lambda f: with_submodule(f).parent / ".git/modules/part",
    "separate git dir": separate,
    "linked to a separate git dir": lambda f: linked(separate(f), f / "side"),
    "shallow": shallow,
    "include": lambda folder: included(folder, "[include]"),
    "includeIf": lambda folder: included(folder, '[includeIf "gitdir:repo/"]'),
    "worktree config": by_worktree,
    "tab in a value": lambda f: configured(f, "[user]\n\tname = a\tb\n"),
    "sha256": longer_hashes,
}

# Variables decide where git is.
TOLD: dict[str, Callable[[Path], Standing]] = {
    "hook in a linked worktree": in_a_hook,
    "GIT_COMMON_DIR": with_common_dir,
    "relative GIT_DIR": lambda f: (made(f / "repo"), {"GIT_DIR": ".git"}),
    "hook of a bare one": lambda f: (bare(f), {"GIT_DIR": "."}),
    "GIT_DIR of a file": lambda f: (linked(made(f / "repo"), f / "side"), {"GIT_DIR": ".git"}),
    "hook, without an origin": lambda f: (
        without_origin(linked(made(f / "repo"), f / "side")),
        {"GIT_DIR": str(f / "repo" / ".git" / "worktrees" / "side")},
    ),
    "GIT_INDEX_FILE": lambda f: (made(f / "repo"), {"GIT_INDEX_FILE": ".git/index"}),
    "GIT_WORK_TREE": lambda f: (made(f / "repo"), {"GIT_WORK_TREE": str(f)}),
    "dotfiles": dotfiles,
    "ceiling further up": lambda f: (
        below(made(f / "repo")),
        {"GIT_CEILING_DIRECTORIES": str(f)},
    ),
    "settings of the moment": lambda f: (
        made(f / "repo"),
        {
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "remote.origin.url",
            "GIT_CONFIG_VALUE_0": "other",
        },
    ),
    "include and settings of the moment": lambda f: (
        included(f, "[include]"),
        {
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "remote.origin.url",
            "GIT_CONFIG_VALUE_0": "",
        },
    ),
    "insteadOf": lambda f: (
        made(f / "repo"),
        {
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "url.https://mirror.example/.insteadOf",
            "GIT_CONFIG_VALUE_0": "https://forge.example/",
        },
    ),
}


def _without_variables(make: Callable[[Path], Path]) -> Callable[[Path], Standing]:
    return lambda folder: (make(folder), {})


SITUATIONS: dict[str, Callable[[Path], Standing]] = {
    **{name: _without_variables(make) for name, make in (READ | ASKED).items()},
    **TOLD,
}
