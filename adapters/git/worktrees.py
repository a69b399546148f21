"""The worktrees of a repository, listed, added and removed by git itself.

Git is started in a folder of the repository, and checks as always whether that is the user's own.
What only asks runs nothing that the repository's config names. Adding and removing a worktree was
asked for by name and is git's ordinary work: hooks and filters of the repository run.
"""

import logging
import os
from collections.abc import Mapping

from herdbook.adapters.git.facts import facts as facts_of
from herdbook.adapters.git.facts import folder_for_git, repository_root
from herdbook.adapters.git.git_process import ask_git, elsewhere, refuse, run_git
from herdbook.adapters.git.status import status as status_of
from herdbook.adapters.git.worktree_list import admin_dirs, list_worktrees
from herdbook.adapters.git.worktree_lock import locked
from herdbook.domain.errors import HerdbookError, InvalidValue, StoreUnavailable
from herdbook.domain.location.identity import GitFacts
from herdbook.ports.world.git import PATIENCE

__all__ = ["add", "is_clean", "list_worktrees", "prune", "remove"]

_LOG = logging.getLogger(__name__)

_Path = str | os.PathLike[str]


def add(
    facts: GitFacts,
    path: _Path,
    branch: str,
    base: str | None = None,
    *,
    patience: float = PATIENCE,
) -> GitFacts:
    """Check a branch out into a new worktree; the facts about that."""
    environment = elsewhere(os.environ)
    folder = _absolute(path)
    _check_name(facts, branch, environment)
    with locked(facts.common_dir, patience):
        _check_free(folder)
        begin = _begin(facts, branch, base, environment)
        # Named by its hash, so that no other name can be meant and no upstream gets set.
        what = [folder, branch] if begin is None else ["-b", branch, folder, begin]
        above = _missing_above(folder)

        def undo() -> None:
            _take_back(facts, folder, environment)
            _remove_empty(above)
            if begin is not None:
                _take_branch_back(facts, branch, begin, environment)

        git = ["-C", folder_for_git(facts), "worktree", "add"]
        try:
            status, _, complaint = run_git([*git, *what], environment)
        except HerdbookError:  # it took too long, and was ended
            undo()
            raise
        if status != 0:
            if not _stands(facts, folder):
                undo()
                refuse("worktree", status, complaint)
            _LOG.warning("git has added %r, but a hook of the repository failed", folder)
    added = facts_of(folder, environment=environment)
    if added is None:
        raise StoreUnavailable(folder, "git has added it, but does not know it as a worktree")
    return added


def remove(
    facts: GitFacts, path: _Path, *, force: bool = False, patience: float = PATIENCE
) -> None:
    """Remove a worktree and what the repository knows of it; its branch stays."""
    how = ["--force"] if force else []
    folder = _absolute(path)
    git = [*_beside(facts, folder), "worktree", "remove", *how, "--", folder]
    with locked(facts.common_dir, patience):
        status, _, complaint = run_git(git, elsewhere(os.environ))
    if status != 0:
        refuse("worktree", status, complaint)


def prune(facts: GitFacts, *, patience: float = PATIENCE) -> list[str]:
    """Forget worktrees whose folders are gone; the paths where those were."""
    with locked(facts.common_dir, patience):
        before = admin_dirs(facts.common_dir)
        git = ["-C", folder_for_git(facts), "worktree", "prune"]
        status, _, complaint = run_git(git, elsewhere(os.environ))
        if status != 0:
            refuse("worktree", status, complaint)
        after = admin_dirs(facts.common_dir)
    return sorted(path for path in before if path not in after)


def is_clean(path: _Path) -> bool:
    """Whether the worktree holds no change and no untracked file that git does not ignore."""
    environment = elsewhere(os.environ)
    status, told, complaint = status_of(_absolute(path), environment, PATIENCE, untracked="normal")
    if status != 0:
        refuse("path", status, complaint)
    return not told


def _beside(facts: GitFacts, folder: str) -> list[str]:
    """How to start git in a folder of the repository that stays when this worktree goes."""
    if facts.top_level != folder:
        return ["-C", folder_for_git(facts)]
    # A bare one is not come upon here: the worktree names it, and git would work with it there.
    return ["-c", "safe.bareRepository=all", "-C", repository_root(facts)]


def _absolute(path: _Path) -> str:
    text = os.fspath(path)
    if not text:
        raise InvalidValue("path", "it must not be empty")
    try:
        return os.path.realpath(text)
    except ValueError as error:
        reason = f"{text!r} holds a NUL, or what the system cannot encode"
        raise InvalidValue("path", reason) from error


def _check_name(facts: GitFacts, branch: str, environment: Mapping[str, str]) -> None:
    reason = f"{branch!r} is no name that git allows for a branch"
    if not branch or branch.startswith("-") or "\0" in branch:
        raise InvalidValue("branch", reason)
    git = ["-C", folder_for_git(facts), "check-ref-format", "--branch", branch]
    status, told, _ = ask_git(git, environment)
    # Git also takes `@{-1}` for the branch before this one, and prints that one's name.
    if status != 0 or told != os.fsencode(branch) + b"\n":
        raise InvalidValue("branch", reason)


def _check_free(folder: str) -> None:
    if not os.path.lexists(folder):
        return
    if not os.path.isdir(folder):
        raise InvalidValue("path", f"{folder!r} is there already and no folder")
    try:
        filled = bool(os.listdir(folder))
    except OSError as error:
        raise StoreUnavailable(folder, f"it could not be read ({error.strerror})") from error
    if filled:
        raise InvalidValue("path", f"the folder {folder!r} is there already and not empty")


def _missing_above(folder: str) -> list[str]:
    """The folders that git will make on the way to this one, the deepest first."""
    missing = []
    while not os.path.lexists(folder := os.path.dirname(folder)):
        missing.append(folder)
    return missing


def _remove_empty(folders: list[str]) -> None:
    for folder in folders:
        try:
            os.rmdir(folder)
        except FileNotFoundError:
            continue
        except OSError:
            return  # somebody has put something there in the meantime


def _begin(
    facts: GitFacts, branch: str, base: str | None, environment: Mapping[str, str]
) -> str | None:
    """The commit where a new branch begins; None for a branch that exists already."""
    if _commit(facts, f"refs/heads/{branch}", environment) is not None:
        if base is not None:
            reason = f"the branch {branch!r} exists already, so it cannot begin at {base!r}"
            raise InvalidValue("base", reason)
        return None
    name = "HEAD" if base is None else base
    begin = _commit(facts, name, environment)
    if begin is not None:
        return begin
    if base is None:
        reason = "there is no commit yet at HEAD, and a worktree must begin at one: commit first"
        raise InvalidValue("base", reason)
    raise InvalidValue("base", f"{base!r} names no commit of this repository")


def _commit(facts: GitFacts, name: str, environment: Mapping[str, str]) -> str | None:
    """The hash of the commit that a name stands for, seen from where we are."""
    if not name or name.startswith("-") or "\0" in name:
        return None
    wanted = ["rev-parse", "--verify", "--quiet", f"{name}^{{commit}}"]
    status, told, complaint = ask_git(["-C", folder_for_git(facts), *wanted], environment)
    if status == 0:
        return told.decode("ascii").strip()
    if status != 1 and name == "HEAD":
        refuse("git", status, complaint)
    return None


def _stands(facts: GitFacts, folder: str) -> bool:
    """Whether it was added all the same: git also reports a hook that failed when all was done."""
    found = [each for each in list_worktrees(facts) if each.path == folder]
    return any(each.locked is None and each.prunable is None for each in found)


def _take_back(facts: GitFacts, folder: str, environment: Mapping[str, str]) -> None:
    """Undo what git leaves behind only when it was killed: a worktree locked as `initializing`."""
    if any(each.path == folder and each.locked == "initializing" for each in list_worktrees(facts)):
        git = [*_beside(facts, folder), "worktree", "remove", "--force", "--force"]
        status, _, complaint = run_git([*git, "--", folder], environment)
        if status != 0:
            refuse("worktree", status, complaint)


def _take_branch_back(
    facts: GitFacts, branch: str, begin: str, environment: Mapping[str, str]
) -> None:
    """Undo the branch that `git worktree add` leaves behind when it fails, if nobody uses it."""
    ref = f"refs/heads/{branch}"
    unmoved = _commit(facts, ref, environment) == begin
    if unmoved and not any(each.branch == branch for each in list_worktrees(facts)):
        git = ["-C", folder_for_git(facts), "update-ref", "-d", ref, begin]
        status, _, complaint = run_git(git, environment)
        if status != 0:
            refuse("branch", status, complaint)
