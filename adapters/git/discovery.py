"""Where the repository of a folder lies, found by reading git's files as git does.

Whatever is out of the ordinary raises `Unsure`; `asking` then asks git. So does everything of which
git asks the user's settings first: a repository that somebody else owns (`safe.directory`) and a
bare one that nobody named (`safe.bareRepository`). Nothing here trusts what it reads enough to run
it. Imports nothing heavy: see `place`.
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

# Set by hooks and by people who know what they do: git has rules for each.
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
    """The directories git works with from some folder; all are real paths."""

    git_dir: str
    common_dir: str
    top_level: str | None
    folder: str  # git started there works with these directories
    doubt: str | None = None  # why the worktree that git would use is not taken for one


class BareCandidate(NamedTuple):
    """A folder that git would take for a bare repository because one stands inside it."""

    path: str


class RepositorySettings(NamedTuple):
    """What a repository's own config files say of it, without what they include."""

    bare: bool | None
    worktree: str | None
    origin_urls: list[str]
    includes: bool
    plain: bool  # no version or extension that could change how git reads the repository


def discover(folder: str, environment: Mapping[str, str]) -> GitDirectories | BareCandidate | None:
    """The place of a folder given by its real path; None outside any repository.

    Raises Unsure where only git can tell, also where somebody else owns the worktree, its `.git` or
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
    """The nearest folder above a path that holds a `.git`, whatever lies between; None if none."""
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
    """The worktree of a repository that is not bare, in whose config `core.worktree` names this.

    It is the one that is named if that leads back, else the folder around `.git`. None where the
    git directory lies apart and its config does not tell.
    """
    if named is not None:
        path = os.path.realpath(os.path.join(common_dir, named))
        if leads_to(path, common_dir):
            return path
    folder, name = os.path.split(common_dir)
    return folder if name == ".git" else None


def settings(common_dir: str) -> RepositorySettings:
    """What the repository's own config file says, and that of its main worktree."""
    said = _entries(common_dir, "config")
    last = dict(said)
    if "extensions.worktreeconfig" in last:
        own = dict(_entries(common_dir, "config.worktree"))
        last.update({key: own[key] for key in (_BARE, _WORKTREE) if key in own})
    return RepositorySettings(
        bare=parse_boolean(last[_BARE]) if _BARE in last else None,
        worktree=last.get(_WORKTREE),
        origin_urls=[value or "" for key, value in said if key == "remote.origin.url"],
        includes=any(key.startswith(("include.", "includeif.")) for key in last),
        plain=all(_is_plain(key, value) for key, value in last.items()),
    )


def _is_plain(key: str, value: str | None) -> bool:
    """Whether a setting leaves it as it is how git reads a repository."""
    if key == "core.repositoryformatversion":
        return value in {"0", "1"}
    if key == _WORKTREE:
        return value is not None
    return not key.startswith("extensions.") or key in _HARMLESS_EXTENSIONS


def _entries(folder: str, name: str) -> list[tuple[str, str | None]]:
    return parse_config(read_small_file(os.path.join(folder, name), limit=4 * SIZE_LIMIT) or b"")


def _directories(git_dir: str, here: str) -> GitDirectories:
    """The place of a git directory that the `.git` of a folder is or names."""
    real = os.path.realpath(git_dir)
    common = os.path.realpath(common_dir_of(real))
    said = settings(common)
    if not said.plain:
        raise NeedsGit
    worktree: str | None = here
    # A linked worktree has its own .git file; these two speak of the main worktree alone.
    if real == common:
        if said.worktree is not None:
            path = os.path.join(real, said.worktree)
            if said.bare or not os.path.isdir(path):
                raise NeedsGit
            worktree = os.path.realpath(path)
        elif said.bare:
            worktree = None
    return drop_doubtful_worktree(GitDirectories(real, common, worktree, here), said.worktree)


def drop_doubtful_worktree(place: GitDirectories, named: str | None) -> GitDirectories:
    """A place that nobody named, without its worktree if that and the repository disagree.

    `named` is what its config calls its worktree.
    """
    if place.top_level is None:
        return place
    doubt = worktree_mismatch(place.top_level, place.git_dir, place.common_dir, named)
    return place if doubt is None else place._replace(top_level=None, doubt=doubt)


def _device(path: str) -> int:
    try:
        return os.stat(path).st_dev
    except OSError as error:
        raise NeedsGit from error
