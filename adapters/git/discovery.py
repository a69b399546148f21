"""Find the repository of a folder by reading git's files as git does.

Anything unusual raises `NeedsGit`; `git_cli` then asks git. So does everything for which git checks
the user's settings first: a repository that somebody else owns (`safe.directory`) and a bare one
that was not named (`safe.bareRepository`). Nothing that is read here is ever run. Imports nothing
heavy: see `facts`.
"""

import os
from collections.abc import Mapping
from stat import S_ISDIR, S_ISREG
from typing import Final, NamedTuple

from herdbook.adapters.git.config import NeedsGit, parse_boolean, parse_config
from herdbook.adapters.git.git_files import (
    SIZE_LIMIT,
    common_dir_of,
    git_dir_named_in,
    is_git_dir,
    mode_of,
    read_small_file,
)
from herdbook.adapters.git.ownership import check_owner, leads_to, worktree_mismatch

# Set by hooks and by expert users: git has its own rules for each.
_DECIDING_VARIABLES: Final = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_COMMON_DIR",
    "GIT_CEILING_DIRECTORIES",
    "GIT_DISCOVERY_ACROSS_FILESYSTEM",
    "GIT_OBJECT_DIRECTORY",
    "GIT_TEST_ASSUME_DIFFERENT_OWNER",
)
_HARMLESS_EXTENSIONS: Final = frozenset({"extensions.noop", "extensions.preciousobjects"})
_BARE: Final = "core.bare"
_WORKTREE: Final = "core.worktree"


class GitDirectories(NamedTuple):
    """The directories git uses when started in some folder; all are real paths."""

    git_dir: str
    common_dir: str
    top_level: str | None
    folder: str  # git started there uses these directories
    problem: str | None = None  # why the worktree that git would use is not accepted


class BareCandidate(NamedTuple):
    """A folder that looks like a bare repository to git."""

    path: str


class RepositorySettings(NamedTuple):
    """The settings in a repository's own config files, without included files."""

    bare: bool | None
    worktree: str | None
    origin_urls: list[str]
    includes: bool
    plain: bool  # no version or extension that could change how git reads the repository


def discover(folder: str, environment: Mapping[str, str]) -> GitDirectories | BareCandidate | None:
    """The git directories of a folder, given by its real path; None outside any repository.

    Raises NeedsGit where only git can tell, also if somebody else owns the worktree, its `.git` or
    the git directory: these are the paths whose owners git compares with the user.
    """
    if any(name in environment for name in _DECIDING_VARIABLES):
        raise NeedsGit
    device = _device(folder)
    here = folder
    while True:
        dot_git = os.path.join(here, ".git")
        mode = mode_of(dot_git)
        if mode is not None and S_ISREG(mode):
            git_dir = git_dir_named_in(dot_git, here)
            check_owner(dot_git, here, git_dir)
            return _directories(git_dir, here)
        if mode is not None and not S_ISDIR(mode):
            raise NeedsGit
        if mode is not None and is_git_dir(dot_git):
            check_owner(here, dot_git)
            return _directories(dot_git, here)
        if is_git_dir(here):
            return BareCandidate(here)
        above = os.path.dirname(here)
        if above == here or _device(above) != device:
            return None
        here = above


def repository_above(path: str) -> str | None:
    """The nearest folder above a path that has a `.git`; None if none has."""
    device = _device(path)
    here = path
    while (above := os.path.dirname(here)) != here and _device(above) == device:
        here = above
        dot_git = os.path.join(here, ".git")
        mode = mode_of(dot_git)
        if mode is not None and (not S_ISDIR(mode) or is_git_dir(dot_git)):
            return here
    return None


def main_worktree(common_dir: str, named: str | None) -> str | None:
    """The main worktree of a repository that is not bare; `named` is its `core.worktree`.

    It is the named one if its `.git` leads back to the repository, else the folder around `.git`.
    None if the git directory is elsewhere and its config names no worktree.
    """
    if named is not None:
        path = os.path.realpath(os.path.join(common_dir, named))
        if leads_to(path, common_dir):
            return path
    folder, name = os.path.split(common_dir)
    return folder if name == ".git" else None


def settings(common_dir: str) -> RepositorySettings:
    """The settings of the repository's own config file and of its main worktree's."""
    found_settings = _entries(common_dir, "config")
    last = dict(found_settings)
    if "extensions.worktreeconfig" in last:
        own = dict(_entries(common_dir, "config.worktree"))
        last.update({key: own[key] for key in (_BARE, _WORKTREE) if key in own})
    return RepositorySettings(
        bare=parse_boolean(last[_BARE]) if _BARE in last else None,
        worktree=last.get(_WORKTREE),
        origin_urls=[value or "" for key, value in found_settings if key == "remote.origin.url"],
        includes=any(key.startswith(("include.", "includeif.")) for key in last),
        plain=all(_is_plain(key, value) for key, value in last.items()),
    )


def _is_plain(key: str, value: str | None) -> bool:
    """Whether a setting does not change how git reads a repository."""
    if key == "core.repositoryformatversion":
        return value in {"0", "1"}
    if key == _WORKTREE:
        return value is not None
    return not key.startswith("extensions.") or key in _HARMLESS_EXTENSIONS


def _entries(folder: str, name: str) -> list[tuple[str, str | None]]:
    return parse_config(read_small_file(os.path.join(folder, name), limit=4 * SIZE_LIMIT) or b"")


def _directories(git_dir: str, here: str) -> GitDirectories:
    """The directories for a git directory that the `.git` of a folder is or names."""
    real = os.path.realpath(git_dir)
    common = os.path.realpath(common_dir_of(real))
    found_settings = settings(common)
    if not found_settings.plain:
        raise NeedsGit
    worktree: str | None = here
    # A linked worktree has its own .git file; these two settings are about the main worktree only.
    if real == common:
        if found_settings.worktree is not None:
            path = os.path.join(real, found_settings.worktree)
            if found_settings.bare or not os.path.isdir(path):
                raise NeedsGit
            worktree = os.path.realpath(path)
        elif found_settings.bare:
            worktree = None
    return drop_doubtful_worktree(
        GitDirectories(real, common, worktree, here), found_settings.worktree
    )


def drop_doubtful_worktree(dirs: GitDirectories, named: str | None) -> GitDirectories:
    """Directories that were found by looking, without the worktree if the repository disowns it.

    `named` is its `core.worktree`.
    """
    if dirs.top_level is None:
        return dirs
    problem = worktree_mismatch(dirs.top_level, dirs.git_dir, dirs.common_dir, named)
    return dirs if problem is None else dirs._replace(top_level=None, problem=problem)


def _device(path: str) -> int:
    try:
        return os.stat(path).st_dev
    except OSError as error:
        raise NeedsGit from error
