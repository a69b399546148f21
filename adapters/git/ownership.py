"""Checks that a repository and its worktree belong together and to this user.

Imports nothing heavy: see `facts`.
"""

import os
from stat import S_ISREG

from herdbook.adapters.git.config import NeedsGit
from herdbook.adapters.git.git_files import git_dir_named_in, mode_of, registered_worktree


class UntrustedRepository(Exception):
    """There is a repository that git refuses to use for this user; the sentence says why."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence)
        self.sentence = sentence


def check_owner(*paths: str) -> None:
    """Raise NeedsGit if somebody else owns one of the paths; links are not followed."""
    user = os.geteuid()
    try:
        if all(os.lstat(path).st_uid == user for path in paths):
            return
    except OSError as error:
        raise NeedsGit from error
    raise NeedsGit


def worktree_mismatch(
    worktree: str, git_dir: str, common_dir: str, named: str | None
) -> str | None:
    """Why a worktree is not accepted as a repository's own; None if both agree.

    Git accepts either side's claim. But a settings file in a worktree may choose locations inside
    the repository, and a file that came with an archive can claim any folder as its worktree, or
    any repository as its own. So both must agree: the worktree's `.git` leads to the git directory,
    and the repository has no other worktree with a better claim. `named` is `core.worktree`.
    """
    if git_dir == os.path.join(worktree, ".git"):
        return None
    if not leads_to(worktree, git_dir):
        return (
            f"the repository's config names {printable(worktree)} as its worktree, where no `.git` "
            f"leads back to {printable(git_dir)}"
        )
    if git_dir != common_dir:
        other = registered_worktree(git_dir)
        if is_within(git_dir, common_dir) and (
            other is None or _is_same(other, worktree) or not leads_to(other, git_dir)
        ):
            return None
    elif (
        os.path.basename(git_dir) != ".git"
        or (named is not None and _is_same(os.path.join(git_dir, named), worktree))
        or _is_same(os.path.dirname(git_dir), worktree)
    ):
        return None
    return (
        f"the `.git` of {printable(worktree)} names {printable(git_dir)}, which does not belong "
        "to it"
    )


def leads_to(worktree: str, git_dir: str) -> bool:
    """Whether the `.git` of a worktree is, or names, this very git directory."""
    dot_git = os.path.join(worktree, ".git")
    try:
        mode = mode_of(dot_git)
        if mode is None:
            return False
        named = git_dir_named_in(dot_git, worktree) if S_ISREG(mode) else dot_git
    except NeedsGit:
        return False
    return os.path.realpath(named) == git_dir


def is_within(path: str, folder: str) -> bool:
    """Whether a real path is a folder or below it."""
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")


def printable(path: str) -> str:
    """A path as printable text, for any bytes it may have."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def _is_same(one: str, other: str) -> bool:
    """Whether two paths are one folder, also if it is mounted twice or case does not matter."""
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False
