"""Commits of a worktree: by name, and from the reflog of its HEAD."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from herdbook.adapters.git.git_process import ask_git, without_repository_variables

MAX_MOVES = 2_000
"""How many entries of the reflog are read."""


class Revision(NamedTuple):
    """A commit's hash and the first line of its message."""

    commit_hash: str
    subject: str


class HeadMove(NamedTuple):
    """A reflog entry: the time in seconds since 1970, the commit, and whether it was made then."""

    at: int
    revision: Revision
    made: bool


def find_revision(folder: str, name: str, environment: Mapping[str, str]) -> Revision | None:
    """The commit with this name in the repository of a folder; None if there is none."""
    found = _ask(
        folder, ["log", "-1", "--format=%H%x00%s", "--end-of-options", name, "--"], environment
    )
    for line in found:
        commit_hash, _, subject = line.partition("\0")
        return Revision(commit_hash, subject)
    return None


def head_moves(folder: str, environment: Mapping[str, str]) -> list[HeadMove]:
    """The reflog of a worktree's HEAD, latest first, as far as git has kept it."""
    form = "--format=%gd%x00%H%x00%gs%x00%s"
    lines = _ask(
        folder, ["log", "-g", f"-{MAX_MOVES}", "--date=unix", form, "HEAD", "--"], environment
    )
    found = []
    for line in lines:
        place, commit_hash, action, subject = line.split("\0", 3)
        seconds = place.partition("@{")[2].rstrip("}")
        if seconds.isdecimal():
            revision = Revision(commit_hash, subject)
            found.append(HeadMove(int(seconds), revision, made=action.startswith("commit")))
    return found


def match_commits(moves: Sequence[HeadMove], seconds: Sequence[int]) -> list[Revision | None]:
    """The commits of post-commit hooks that ran in this order and at these times.

    Git counts whole seconds, and a hook runs a little later than its commit. So the last hook is
    matched with the last commit before it, the hook before it with the last remaining one, and so
    on.
    """
    left = [move for move in moves if move.made]
    found: list[Revision | None] = []
    for second in reversed(seconds):
        while left and left[0].at > second:
            left.pop(0)
        found.append(left.pop(0).revision if left else None)
    return found[::-1]


def _ask(folder: str, words: list[str], environment: Mapping[str, str]) -> list[str]:
    status, output, _ = ask_git(["-C", folder, *words], without_repository_variables(environment))
    return output.decode("utf-8", "replace").splitlines() if status == 0 else []
