"""Facts from git itself, where reading its files is not enough.

Git is always started in a folder and finds the repository as it does for the user, so it decides
whether to trust it; if it refuses, `UntrustedRepository` is raised.
"""

import os
from collections.abc import Mapping
from typing import NoReturn

from herdbook.adapters.git.config import NeedsGit
from herdbook.adapters.git.discovery import GitDirectories, drop_doubtful_worktree, settings
from herdbook.adapters.git.git_process import (
    ask_git,
    raise_complaint,
    trust_refusal,
    without_repository_variables,
)
from herdbook.adapters.git.ownership import UntrustedRepository

HISTORY_PATIENCE = 60.0
"""How many seconds git may search for the first commits of a repository."""
_NO_REPOSITORY = "not a git repository (or any "
_WANTED_KEYS = r"^(core\.bare|remote\.origin\.url)$"
# Variables that are meant for every query; the rest of a hook's variables are for its own index
# and objects.
_LOCATION_VARIABLES = ("GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_CEILING_DIRECTORIES")


def discover_with_git(folder: str, environment: Mapping[str, str]) -> GitDirectories | None:
    """The git directories of a folder, with one process; None outside any repository."""
    # Paths may contain newlines, so an unpredictable word separates them.
    mark = f"--herdbook-{os.urandom(16).hex()}"
    wanted = ["--absolute-git-dir", mark, "--git-common-dir", mark, "--show-toplevel"]
    status, output, complaint = ask_git(["-C", folder, "rev-parse", *wanted], environment)
    parts = os.fsdecode(output).split(f"\n{mark}\n")
    if len(parts) < 3:  # noqa: PLR2004 - git refused before it printed the worktree
        if complaint.startswith(_NO_REPOSITORY):
            return None
        _refuse(status, complaint)
    git_dir, common_dir, top_level = parts
    dirs = GitDirectories(
        git_dir=os.path.realpath(git_dir),
        common_dir=os.path.realpath(os.path.join(folder, common_dir)),
        top_level=os.path.realpath(top_level.removesuffix("\n")) if status == 0 else None,
        folder=folder,
    )
    # Variables are set by the user. With GIT_DIR alone the worktree is the folder.
    if "GIT_WORK_TREE" in environment or ("GIT_DIR" in environment and dirs.top_level == folder):
        return dirs
    return drop_doubtful_worktree(dirs, _configured_worktree(dirs.common_dir))


def settings_from_git(folder: str, environment: Mapping[str, str]) -> tuple[str | None, list[str]]:
    """`core.bare` and the origin's URLs from the repository's config and what it includes."""
    wanted = ["config", "--local", "--includes", "-z", "--get-regexp", _WANTED_KEYS]
    status, output, complaint = ask_git(["-C", folder, *wanted], environment)
    if status not in {0, 1}:
        _refuse(status, complaint)
    bare = None
    urls = []
    for entry in output.decode("utf-8", "surrogateescape").split("\0")[:-1]:
        key, has_value, value = entry.partition("\n")
        if key == "core.bare":
            bare = value if has_value else "true"
        else:
            urls.append(value)
    return bare, urls


def branch_from_git(folder: str, environment: Mapping[str, str]) -> str | None:
    """The branch that HEAD names; None if it is detached."""
    wanted = ["-C", folder, "symbolic-ref", "--quiet", "HEAD"]
    status, output, complaint = ask_git(wanted, environment)
    if status not in {0, 1}:
        _refuse(status, complaint)
    name = output.decode("utf-8", "surrogateescape").removesuffix("\n")
    return name.removeprefix("refs/heads/") if name.startswith("refs/heads/") else None


def root_commits(folder: str, environment: Mapping[str, str]) -> tuple[str, ...]:
    """The root commits of the main worktree's HEAD; empty if it has no commit yet.

    Nothing is fetched for them: raises InvalidValue for a partial clone that lacks some.
    """
    named = {name: environment[name] for name in _LOCATION_VARIABLES if name in environment}
    variables = {**without_repository_variables(environment), **named}
    git = ["-C", folder, "--no-replace-objects"]
    head = "main-worktree/HEAD"  # the main worktree's HEAD, from all worktrees
    status, output, complaint = ask_git(
        [*git, "rev-list", "--max-parents=0", head, "--"], variables, HISTORY_PATIENCE
    )
    if status == 0:
        return tuple(sorted(output.decode("ascii").split()))
    born, _, _ = ask_git([*git, "rev-parse", "--verify", "--quiet", head], variables)
    if born != 1:
        _refuse(status, complaint)
    return ()


def worktree_from_git(common_dir: str, environment: Mapping[str, str]) -> str | None:
    """`core.worktree` in a repository's own config file; None if it is not set."""
    file = os.path.join(common_dir, "config")
    wanted = ["config", "--file", file, "--no-includes", "-z", "--get", "core.worktree"]
    status, output, complaint = ask_git(
        ["-C", "/", *wanted], without_repository_variables(environment)
    )
    if status not in {0, 1}:
        raise_complaint("git", status, complaint)
    return os.fsdecode(output).removesuffix("\0") if status == 0 else None


def _configured_worktree(common_dir: str) -> str | None:
    try:
        return settings(common_dir).worktree
    except NeedsGit:
        return None


def _refuse(status: int, complaint: str) -> NoReturn:
    sentence = trust_refusal(complaint)
    if sentence is not None:
        raise UntrustedRepository(sentence)
    raise_complaint("git", status, complaint)
