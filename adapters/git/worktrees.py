"""The worktrees of a repository, listed, added and removed by git itself.

Git is started in the common git directory, so it works from any worktree, also from one that is
about to go, and checks as always whether the repository is the user's own.
"""

import logging
import os
from collections.abc import Mapping

from herdbook.adapters.git.listing import admin_dirs, listed
from herdbook.adapters.git.lock import locked
from herdbook.adapters.git.place import facts as facts_of
from herdbook.adapters.git.program import elsewhere, ran, refuse
from herdbook.domain.errors import InvalidValue, StoreUnavailable
from herdbook.domain.identity import GitFacts
from herdbook.ports.git import PATIENCE

__all__ = ["add", "is_clean", "listed", "prune", "remove"]

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
        git = ["-C", facts.common_dir, "worktree", "add"]
        status, _, complaint = ran([*git, *what], environment)
        if status != 0:
            if not _stands(facts, folder):
                _take_back(facts, folder, environment)
                _remove_empty(above)
                if begin is not None:
                    _take_branch_back(facts, branch, begin, environment)
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
    git = ["-C", facts.common_dir, "worktree", "remove", *how, "--", _absolute(path)]
    with locked(facts.common_dir, patience):
        status, _, complaint = ran(git, elsewhere(os.environ))
    if status != 0:
        refuse("worktree", status, complaint)


def prune(facts: GitFacts, *, patience: float = PATIENCE) -> list[str]:
    """Forget worktrees whose folders are gone; the paths where those were."""
    with locked(facts.common_dir, patience):
        before = admin_dirs(facts.common_dir)
        git = ["-C", facts.common_dir, "worktree", "prune"]
        status, _, complaint = ran(git, elsewhere(os.environ))
        if status != 0:
            refuse("worktree", status, complaint)
        after = admin_dirs(facts.common_dir)
    return sorted(path for path in before if path not in after)


def is_clean(path: _Path) -> bool:
    """Whether the worktree holds no change and no untracked file that git does not ignore."""
    git = ["--no-optional-locks", "-C", _absolute(path), "status", "--porcelain", "-z"]
    wanted = ["--untracked-files=normal", "--ignore-submodules=none"]
    status, told, complaint = ran([*git, *wanted], elsewhere(os.environ))
    if status != 0:
        refuse("path", status, complaint)
    return not told


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
    git = ["--git-dir", facts.common_dir, "check-ref-format", "--branch", branch]
    status, told, _ = ran(git, environment)
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
    git = ["--git-dir", facts.git_dir, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}"]
    status, told, complaint = ran(git, environment)
    if status == 0:
        return told.decode("ascii").strip()
    if status != 1 and name == "HEAD":
        refuse("git", status, complaint)
    return None


def _stands(facts: GitFacts, folder: str) -> bool:
    """Whether it was added all the same: git also reports a hook that failed when all was done."""
    found = [each for each in listed(facts) if each.path == folder]
    return any(each.locked is None and each.prunable is None for each in found)


def _take_back(facts: GitFacts, folder: str, environment: Mapping[str, str]) -> None:
    """Undo what git leaves behind only when it was killed: a worktree locked as `initializing`."""
    if any(each.path == folder and each.locked == "initializing" for each in listed(facts)):
        git = ["-C", facts.common_dir, "worktree", "remove", "--force", "--force", "--", folder]
        status, _, complaint = ran(git, environment)
        if status != 0:
            refuse("worktree", status, complaint)


def _take_branch_back(
    facts: GitFacts, branch: str, begin: str, environment: Mapping[str, str]
) -> None:
    """Undo the branch that `git worktree add` leaves behind when it fails, if nobody uses it."""
    ref = f"refs/heads/{branch}"
    unmoved = _commit(facts, ref, environment) == begin
    if unmoved and not any(each.branch == branch for each in listed(facts)):
        git = ["-C", facts.common_dir, "update-ref", "-d", ref, begin]
        status, _, complaint = ran(git, environment)
        if status != 0:
            refuse("branch", status, complaint)
