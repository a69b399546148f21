"""Git's own files, read as git reads them and without starting it.

If a file cannot be read or is not fully understood, `NeedsGit` is raised, and git has to be asked.
Imports nothing heavy: see `facts`.
"""

import os
import re
from stat import S_ISREG
from typing import Final

from herdbook.adapters.git.config import NeedsGit

SIZE_LIMIT: Final = 1 << 20
_HEAD: Final = re.compile(rb"ref:[ \t\n\r]*refs/|[0-9a-fA-F]{40}")


def is_git_dir(path: str) -> bool:
    """Whether git would accept this as a git directory: it has HEAD, objects and refs."""
    head = os.path.join(path, "HEAD")
    try:
        data = os.fsencode(os.readlink(head))
        looks_right = data.startswith(b"refs/")
    except OSError:
        data = read_small_file(head) or b""
        looks_right = _HEAD.match(data) is not None
    if not looks_right:
        return False
    common = common_dir_of(path)
    parts = (os.path.join(common, name) for name in ("objects", "refs"))
    return all(os.access(part, os.X_OK) for part in parts)


def common_dir_of(git_dir: str) -> str:
    """The common git directory of a linked worktree's own one; otherwise the directory itself."""
    data = read_small_file(os.path.join(git_dir, "commondir"))
    if data is None:
        return git_dir
    if b"\0" in data:
        raise NeedsGit
    return os.path.join(git_dir, os.fsdecode(data.rstrip(b"\r\n")))


def branch_of(git_dir: str) -> str | None:
    """The branch that HEAD names, even without a commit; None if HEAD is detached."""
    head = os.path.join(git_dir, "HEAD")
    try:
        data = os.fsencode(os.readlink(head))
    except OSError:
        data = read_small_file(head) or b""
        if not data.startswith(b"ref:"):
            return None
        data = data[len(b"ref:") :].strip(b" \t\r\n")
    name = data.decode("utf-8", "surrogateescape")
    if name == "refs/heads/.invalid":
        raise NeedsGit  # the placeholder that the reftable format leaves for older programs
    return name.removeprefix("refs/heads/") if name.startswith("refs/heads/") else None


def registered_worktree(git_dir: str) -> str | None:
    """The real path where a repository expects the linked worktree of this git directory."""
    try:
        data = read_small_file(os.path.join(git_dir, "gitdir"))
    except NeedsGit:
        return None  # git reports such a worktree as prunable
    if data is None or b"\0" in data:
        return None
    dot_git = os.path.join(git_dir, os.fsdecode(data.rstrip()))
    return os.path.realpath(os.path.dirname(dot_git))


def git_dir_named_in(dot_git: str, here: str) -> str:
    """The git directory that a `.git` file names; raises NeedsGit if it names none."""
    data = read_small_file(dot_git) or b""
    path = data.rstrip(b"\r\n").removeprefix(b"gitdir: ")
    git_dir = os.path.join(here, os.fsdecode(path))
    if not data.startswith(b"gitdir: ") or not path or b"\0" in path or not is_git_dir(git_dir):
        raise NeedsGit
    return git_dir


def mode_of(path: str) -> int | None:
    """The mode of what a path leads to; None if there is nothing."""
    try:
        return os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise NeedsGit from error


def read_small_file(path: str, limit: int = SIZE_LIMIT) -> bytes | None:
    """The content of a small file; None if there is none.

    Raises NeedsGit for what is no regular file, cannot be read or is larger than `limit`.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        try:
            if not S_ISREG(os.fstat(descriptor).st_mode):
                raise NeedsGit
            data = os.read(descriptor, limit + 1)
            while more := os.read(descriptor, limit + 1 - len(data)):
                data += more
        finally:
            os.close(descriptor)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise NeedsGit from error
    if len(data) > limit:
        raise NeedsGit
    return data
