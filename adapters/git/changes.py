"""Changed paths of worktrees and commits, and files as commits have them.

These only read, and take no lock. A git that does not answer in time is ended (StoreBusy).
"""

import os
from collections.abc import Mapping

from herdbook.adapters.git.git_process import ask_git, without_repository_variables
from herdbook.adapters.git.status import status

TRUNKS = ("refs/remotes/origin/HEAD",)
"""What branches are compared with, where the repository has it."""
PATIENCE = 10.0
"""How many seconds git may take for one query."""


def commit_of(folder: str, name: str, environment: Mapping[str, str]) -> str | None:
    """The hash of the commit with this name; None if there is none."""
    if not name or "\0" in name:
        return None
    words = ["rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}"]
    output = _ask(folder, words, environment)
    return None if output is None else output.decode("ascii").strip()


def merge_base(folder: str, one: str, other: str, environment: Mapping[str, str]) -> str | None:
    """The merge base of two commits; None if they have none."""
    output = _ask(folder, ["merge-base", one, other], environment)
    return output.decode("ascii").strip() if output else None


def changed_paths(
    folder: str, base: str, head: str, environment: Mapping[str, str]
) -> frozenset[str] | None:
    """The paths that differ between two commits, relative to the top of the repository."""
    words = ["diff-tree", "-r", "--name-only", "-z", "--no-renames", "--no-ext-diff"]
    return _split_paths(_ask(folder, [*words, base, head, "--"], environment))


def uncommitted_paths(folder: str, environment: Mapping[str, str]) -> frozenset[str] | None:
    """The paths of a worktree with uncommitted changes, with untracked ones."""
    ended, output, _ = status(
        folder, without_repository_variables(environment), PATIENCE, untracked="all"
    )
    if ended != 0:
        return None
    return frozenset(os.fsdecode(line[3:]) for line in output.split(b"\0") if line)


def text_at(folder: str, commit: str, path: str, environment: Mapping[str, str]) -> str | None:
    """The text of a file in a commit; None if the commit does not have it."""
    if "\0" in path:
        return None
    output = _ask(folder, ["cat-file", "blob", f"{commit}:{path}"], environment)
    return None if output is None else output.decode("utf-8", "replace")


def _split_paths(output: bytes | None) -> frozenset[str] | None:
    if output is None:
        return None
    return frozenset(os.fsdecode(path) for path in output.split(b"\0") if path)


def _ask(folder: str, words: list[str], environment: Mapping[str, str]) -> bytes | None:
    ended, output, _ = ask_git(
        ["-C", folder, *words], without_repository_variables(environment), PATIENCE
    )
    return output if ended == 0 else None
