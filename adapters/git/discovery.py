"""Where the repository of a folder lies, found by reading git's files as git does.

Whatever is out of the ordinary raises `Unsure`; `asking` then asks git. Nothing here trusts what it
reads enough to run it. Imports nothing heavy: see `place`.
"""

import os
import re
from collections.abc import Mapping
from stat import S_ISDIR, S_ISREG
from typing import Final, NamedTuple

from herdbook.adapters.git.config import Unsure, entries, truth

# Set by hooks and by people who know what they do: git has rules for each.
_DECIDES: Final = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_COMMON_DIR",
    "GIT_CEILING_DIRECTORIES",
    "GIT_DISCOVERY_ACROSS_FILESYSTEM",
    "GIT_OBJECT_DIRECTORY",
)
_HARMLESS_EXTENSIONS: Final = frozenset(
    {"extensions.noop", "extensions.preciousobjects", "extensions.partialclone"}
)
_HEAD: Final = re.compile(rb"ref:[ \t\n\r]*refs/|[0-9a-fA-F]{40}")
_BARE: Final = "core.bare"
_MUCH: Final = 1 << 20


class Place(NamedTuple):
    """The directories git works with from some folder; all are real paths."""

    git_dir: str
    common_dir: str
    top_level: str | None


class Settings(NamedTuple):
    """What a repository's own config files say of it, without what they include."""

    bare: bool | None
    worktree: str | None
    origin_urls: list[str]
    includes: bool
    plain: bool  # no version or extension that could change how git reads the repository


def found(folder: str, environment: Mapping[str, str]) -> Place | None:
    """The place of a folder given by its real path; None outside any repository."""
    if any(name in environment for name in _DECIDES):
        raise Unsure
    device = _device(folder)
    here = folder
    while True:
        dot_git = os.path.join(here, ".git")
        mode = _mode(dot_git)
        if mode is not None and S_ISREG(mode):
            return _place(_pointed_to(dot_git, here), here)
        if mode is not None and not S_ISDIR(mode):
            raise Unsure
        if mode is not None and is_git_dir(dot_git):
            return _place(dot_git, here)
        if is_git_dir(here):
            return _place(here, None)
        above = os.path.dirname(here)
        if above == here or _device(above) != device:
            return None
        here = above


def settings(common_dir: str) -> Settings:
    """What the repository's own config file says, and that of its main worktree."""
    bare: bool | None = None
    worktree: str | None = None
    urls: list[str] = []
    includes = False
    plain = True
    by_worktree = False
    for key, value in _entries(common_dir, "config"):
        if key == _BARE:
            bare = truth(value)
        elif key == "core.worktree":
            worktree = value
            plain = plain and value is not None
        elif key == "remote.origin.url":
            urls.append(value or "")
        elif key == "core.repositoryformatversion":
            plain = plain and value in {"0", "1"}
        elif key.startswith("extensions."):
            plain = plain and key in _HARMLESS_EXTENSIONS
            by_worktree = by_worktree or key == "extensions.worktreeconfig"
        elif key.startswith(("include.", "includeif.")):
            includes = True
    if by_worktree:
        said = [value for key, value in _entries(common_dir, "config.worktree") if key == _BARE]
        bare = truth(said[-1]) if said else bare
    return Settings(bare, worktree, urls, includes, plain)


def is_git_dir(path: str) -> bool:
    """Whether git would take this for a git directory: HEAD, objects and refs are there."""
    head = os.path.join(path, "HEAD")
    try:
        data = os.fsencode(os.readlink(head))
        looks_right = data.startswith(b"refs/")
    except OSError:
        data = contents(head) or b""
        looks_right = _HEAD.match(data) is not None
    if not looks_right:
        return False
    common = common_dir_of(path)
    parts = (os.path.join(common, name) for name in ("objects", "refs"))
    return all(os.access(part, os.X_OK) for part in parts)


def common_dir_of(git_dir: str) -> str:
    """The git directory that a linked worktree's own one leans on; itself in all other cases."""
    data = contents(os.path.join(git_dir, "commondir"))
    if data is None:
        return git_dir
    if b"\0" in data:
        raise Unsure
    return os.path.join(git_dir, os.fsdecode(data.rstrip(b"\r\n")))


def branch_of(git_dir: str) -> str | None:
    """The branch that HEAD names, born or not; None when HEAD is detached."""
    head = os.path.join(git_dir, "HEAD")
    try:
        data = os.fsencode(os.readlink(head))
    except OSError:
        data = contents(head) or b""
        if not data.startswith(b"ref:"):
            return None
        data = data[len(b"ref:") :].strip(b" \t\r\n")
    name = data.decode("utf-8", "surrogateescape")
    if name == "refs/heads/.invalid":
        raise Unsure  # what a newer way to keep refs leaves for older programs to read
    return name.removeprefix("refs/heads/") if name.startswith("refs/heads/") else None


def contents(path: str, limit: int = _MUCH) -> bytes | None:
    """All of a small file; None when there is none."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        try:
            data = os.read(descriptor, limit + 1)
            while more := os.read(descriptor, limit + 1 - len(data)):
                data += more
        finally:
            os.close(descriptor)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise Unsure from error
    if len(data) > limit:
        raise Unsure
    return data


def _entries(folder: str, name: str) -> list[tuple[str, str | None]]:
    return entries(contents(os.path.join(folder, name), limit=64 * _MUCH) or b"")


def _place(git_dir: str, worktree: str | None) -> Place:
    """The place of a git directory found beside a worktree, or from within itself."""
    real = os.path.realpath(git_dir)
    common = os.path.realpath(common_dir_of(real))
    said = settings(common)
    if not said.plain:
        raise Unsure
    # A linked worktree has its own .git file; these two speak of the main worktree alone.
    if real == common:
        if said.worktree is not None:
            return Place(real, common, _configured(real, said))
        if said.bare:
            worktree = None
    return Place(real, common, worktree)


def _configured(git_dir: str, said: Settings) -> str:
    """The worktree that core.worktree names, as for a submodule."""
    path = os.path.join(git_dir, said.worktree or "")
    if said.bare or not os.path.isdir(path):
        raise Unsure
    return os.path.realpath(path)


def _pointed_to(dot_git: str, here: str) -> str:
    """The git directory that a `.git` file names."""
    data = contents(dot_git) or b""
    path = data.rstrip(b"\r\n").removeprefix(b"gitdir: ")
    git_dir = os.path.join(here, os.fsdecode(path))
    if not data.startswith(b"gitdir: ") or not path or b"\0" in path or not is_git_dir(git_dir):
        raise Unsure
    return git_dir


def _mode(path: str) -> int | None:
    try:
        return os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise Unsure from error


def _device(path: str) -> int:
    try:
        return os.stat(path).st_dev
    except OSError as error:
        raise Unsure from error
