"""What `git worktree list` prints, and which git directory belongs to which worktree."""

import os
import re
from typing import Final

from herdbook.adapters.git.facts import folder_for_git, repository_root
from herdbook.adapters.git.git_files import registered_worktree
from herdbook.adapters.git.git_process import ask_git, elsewhere, refuse
from herdbook.adapters.git.identity_files import pinned_worktree_id
from herdbook.domain.errors import InvalidValue
from herdbook.domain.location.identity import GitFacts, worktree_id
from herdbook.ports.world.git import GitWorktree

_UNKNOWN_OPTION: Final = 129
_QUOTED: Final = re.compile(rb'\\([abtnvfr"\\]|[0-7]{3})')
_ESCAPED: Final = {
    b"a": b"\a",
    b"b": b"\b",
    b"t": b"\t",
    b"n": b"\n",
    b"v": b"\v",
    b"f": b"\f",
    b"r": b"\r",
    b'"': b'"',
    b"\\": b"\\",
}


def list_worktrees(facts: GitFacts) -> list[GitWorktree]:
    """All worktrees, first the main one or the bare repository."""
    git = ["-C", folder_for_git(facts), "worktree", "list", "--porcelain"]
    environment = elsewhere(os.environ)
    status, told, complaint = ask_git([*git, "-z"], environment)
    records = parsed(told, b"\0")
    if status == _UNKNOWN_OPTION:  # before git 2.36, which has trouble with newlines in paths
        status, told, complaint = ask_git(git, environment)
        records = parsed(told, b"\n")
    if status != 0:
        refuse("git", status, complaint)
    linked = admin_dirs(facts.common_dir)
    return [_worktree(facts, record, linked, is_main=n == 0) for n, record in enumerate(records)]


def parsed(told: bytes, end: bytes) -> list[dict[str, str]]:
    """The records of a listing whose lines end so, each a label with what follows it."""
    records = []
    for record in told.split(end * 2):
        lines = [line.partition(b" ") for line in record.split(end) if line]
        if lines:
            records.append({label.decode(): _plain(rest, end) for label, _, rest in lines})
    return records


def admin_dirs(common_dir: str) -> dict[str, str]:
    """The git directory of every linked worktree, by the path where the repository expects it."""
    folder = os.path.join(common_dir, "worktrees")
    found = {}
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
        git_dir = os.path.join(folder, name)
        path = registered_worktree(git_dir)
        if path is not None:
            found[path] = git_dir
    return found


def _plain(text: bytes, end: bytes) -> str:
    """A text without the quotes that git sets where lines end with a newline."""
    if end == b"\n" and text.startswith(b'"') and text.endswith(b'"'):
        text = _QUOTED.sub(lambda m: _ESCAPED.get(m[1]) or bytes([int(m[1], 8)]), text[1:-1])
    return os.fsdecode(text)


def _worktree(
    facts: GitFacts, record: dict[str, str], linked: dict[str, str], *, is_main: bool
) -> GitWorktree:
    path = os.path.realpath(record["worktree"])
    head = record.get("HEAD", "")
    return GitWorktree(
        path=_main_path(facts) if is_main else path,
        git_dir=(git_dir := facts.common_dir if is_main else linked.get(path)),
        branch=record["branch"].removeprefix("refs/heads/") if "branch" in record else None,
        head=head if head.strip("0") else None,
        is_main=is_main,
        is_bare="bare" in record,
        locked=record.get("locked"),
        prunable=record.get("prunable"),
        worktree_id=_id(facts, git_dir),
    )


def _main_path(facts: GitFacts) -> str:
    """Where the main worktree is: git names the git directory when that lies elsewhere."""
    if facts.is_main and facts.top_level is not None:
        return facts.top_level
    return repository_root(facts)


def _id(facts: GitFacts, git_dir: str | None) -> str | None:
    if git_dir is None:
        return None
    its = facts._replace(git_dir=git_dir, pinned_worktree_id=pinned_worktree_id(git_dir))
    try:
        return worktree_id(its)
    except InvalidValue:
        return None
