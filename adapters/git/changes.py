"""What worktrees change against where they began, and files as commits have them.

These only ask, and take no lock. A git that does not answer in time is ended (StoreBusy).
"""

import os
from collections.abc import Mapping

from herdbook.adapters.git.git_process import ask_git, without_repository_variables
from herdbook.adapters.git.status import status

PATIENCE = 10.0
"""For how many seconds git may think about one question."""


def commit_of(folder: str, name: str, environment: Mapping[str, str]) -> str | None:
    """The hash of the commit that is called so; None if there is none."""
    if not name or "\0" in name:
        return None
    words = ["rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}"]
    told = _ask(folder, words, environment)
    return None if told is None else told.decode("ascii").strip()


def merge_base(folder: str, one: str, other: str, environment: Mapping[str, str]) -> str | None:
    """The commit from which two commits went apart; None if they have none in common."""
    told = _ask(folder, ["merge-base", one, other], environment)
    return told.decode("ascii").strip() if told else None


def changed_paths(
    folder: str, base: str, head: str, environment: Mapping[str, str]
) -> frozenset[str] | None:
    """The paths that differ between two commits, seen from the top of the repository."""
    words = ["diff-tree", "-r", "--name-only", "-z", "--no-renames", "--no-ext-diff"]
    return _split_paths(_ask(folder, [*words, base, head, "--"], environment))


def uncommitted_paths(folder: str, environment: Mapping[str, str]) -> frozenset[str] | None:
    """The paths of a worktree that no commit has as they are; untracked ones too."""
    ended, told, _ = status(
        folder, without_repository_variables(environment), PATIENCE, untracked="all"
    )
    if ended != 0:
        return None
    return frozenset(os.fsdecode(line[3:]) for line in told.split(b"\0") if line)


def text_at(folder: str, commit: str, path: str, environment: Mapping[str, str]) -> str | None:
    """A file as a commit has it; None where it has none."""
    if "\0" in path:
        return None
    told = _ask(folder, ["cat-file", "blob", f"{commit}:{path}"], environment)
    return None if told is None else told.decode("utf-8", "replace")


def _split_paths(told: bytes | None) -> frozenset[str] | None:
    if told is None:
        return None
    return frozenset(os.fsdecode(path) for path in told.split(b"\0") if path)


def _ask(folder: str, words: list[str], environment: Mapping[str, str]) -> bytes | None:
    ended, told, _ = ask_git(
        ["-C", folder, *words], without_repository_variables(environment), PATIENCE
    )
    return told if ended == 0 else None
