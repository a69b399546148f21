"""Parse `git worktree list`, and match worktrees with their git directories."""

import os
from typing import Final

from herdbook.adapters.git.facts import folder_for_git, repository_root
from herdbook.adapters.git.git_files import registered_worktree
from herdbook.adapters.git.git_process import ask_git, raise_complaint, without_repository_variables
from herdbook.adapters.git.identity_files import pinned_worktree_id
from herdbook.domain.errors import InvalidValue
from herdbook.domain.location.identity import GitFacts, worktree_id
from herdbook.ports.world.git import GitWorktree

_UNKNOWN_OPTION: Final = 129


def list_worktrees(facts: GitFacts) -> list[GitWorktree]:
    """All worktrees, first the main one or the bare repository."""
    git = ["-C", folder_for_git(facts), "worktree", "list", "--porcelain"]
    environment = without_repository_variables(os.environ)
    status, output, complaint = ask_git([*git, "-z"], environment)
    records = parse_records(output, b"\0")
    if status == _UNKNOWN_OPTION:  # before git 2.36, which cannot print newlines in paths
        status, output, complaint = ask_git(git, environment)
        records = parse_records(output, b"\n")
    if status != 0:
        raise_complaint("git", status, complaint)
    linked = admin_dirs(facts.common_dir)
    return [_worktree(facts, record, linked, is_main=n == 0) for n, record in enumerate(records)]


def parse_records(output: bytes, end: bytes) -> list[dict[str, str]]:
    """The records of a listing whose lines end with `end`, each a map of labels to values."""
    records = []
    for record in output.split(end * 2):
        lines = [line.partition(b" ") for line in record.split(end) if line]
        if lines:
            records.append({label.decode(): _unquote(rest, end) for label, _, rest in lines})
    return records


def admin_dirs(common_dir: str) -> dict[str, str]:
    """The git directory of every linked worktree, by the worktree path that it records."""
    folder = os.path.join(common_dir, "worktrees")
    found = {}
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
        git_dir = os.path.join(folder, name)
        path = registered_worktree(git_dir)
        if path is not None:
            found[path] = git_dir
    return found


def _unquote(text: bytes, end: bytes) -> str:
    """A text without the quotes that git adds if lines end with a newline."""
    if end == b"\n" and text.startswith(b'"') and text.endswith(b'"'):
        # As in C: a letter, a quote or three octal digits after each backslash, and nothing else.
        text = text[1:-1].decode("unicode_escape").encode("latin-1")
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
        worktree_id=_worktree_id(facts, git_dir),
    )


def _main_path(facts: GitFacts) -> str:
    """The path of the main worktree: git prints the git directory if that is elsewhere."""
    if facts.is_main and facts.top_level is not None:
        return facts.top_level
    return repository_root(facts)


def _worktree_id(facts: GitFacts, git_dir: str | None) -> str | None:
    if git_dir is None:
        return None
    its = facts._replace(git_dir=git_dir, pinned_worktree_id=pinned_worktree_id(git_dir))
    try:
        return worktree_id(its)
    except InvalidValue:
        return None
