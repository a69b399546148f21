"""List, add and remove the worktrees of a repository, with git itself.

Git is started in a folder of the repository, and checks as always whether that is the user's own.
Neither queries nor removing a worktree run anything that the repository's config names. Adding
one is requested by the user and a checkout: hooks and filters of the repository run.
"""

import logging
import os
from collections.abc import Mapping

from herdbook.adapters.git.facts import facts as facts_of
from herdbook.adapters.git.facts import folder_for_git, repository_root
from herdbook.adapters.git.git_process import (
    ask_git,
    raise_complaint,
    run_git,
    without_repository_variables,
)
from herdbook.adapters.git.status import status as status_of
from herdbook.adapters.git.status import without_filters
from herdbook.adapters.git.worktree_list import admin_dirs, list_worktrees
from herdbook.adapters.git.worktree_lock import worktree_lock
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
    """Check a branch out into a new worktree; returns the facts about it.

    If it fails, whatever git has left of the worktree, its folders and its branch is removed.
    """
    environment = without_repository_variables(os.environ)
    folder = _absolute(path)
    _check_name(facts, branch, environment)
    with worktree_lock(facts.common_dir, patience):
        _check_free(folder)
        begin = _start_commit(facts, branch, base, environment)
        # The commit is given by its hash, so that it is unambiguous and no upstream gets set.
        what = [folder, branch] if begin is None else ["-b", branch, folder, begin]
        above = _missing_above(folder)

        def undo() -> None:
            _undo_worktree(facts, folder, environment)
            _remove_empty(above)
            if begin is not None:
                _undo_branch(facts, branch, begin, environment)

        git = ["-C", folder_for_git(facts), "worktree", "add"]
        try:
            status, _, complaint = run_git([*git, *what], environment)
        except HerdbookError:  # it took too long, and was ended
            undo()
            raise
        if status != 0:
            if not _was_added(facts, folder):
                undo()
                raise_complaint("worktree", status, complaint)
            _LOG.warning("git has added %r, but a hook of the repository failed", folder)
    added = facts_of(folder, environment=environment)
    if added is None:
        raise StoreUnavailable(folder, "git has added it, but does not know it as a worktree")
    return added


def remove(
    facts: GitFacts, path: _Path, *, force: bool = False, patience: float = PATIENCE
) -> None:
    """Remove a worktree and its entry in the repository; its branch stays."""
    how = ["--force"] if force else []
    folder = _absolute(path)
    environment = without_repository_variables(os.environ)
    git = [*_git_outside(facts, folder), "worktree", "remove", *how, "--", folder]
    with worktree_lock(facts.common_dir, patience):
        # Without --force git looks for changes first, as `status` does.
        filters = {} if force else _disabled_filters(folder, environment)
        status, _, complaint = run_git(git, environment, hardened=filters)
    if status != 0:
        raise_complaint("worktree", status, complaint)


def prune(facts: GitFacts, *, patience: float = PATIENCE) -> list[str]:
    """Remove the entries of worktrees whose folders are gone; returns their paths."""
    with worktree_lock(facts.common_dir, patience):
        before = admin_dirs(facts.common_dir)
        git = ["-C", folder_for_git(facts), "worktree", "prune"]
        status, _, complaint = run_git(git, without_repository_variables(os.environ), hardened={})
        if status != 0:
            raise_complaint("worktree", status, complaint)
        after = admin_dirs(facts.common_dir)
    return sorted(path for path in before if path not in after)


def is_clean(path: _Path) -> bool:
    """Whether the worktree has no changes and no untracked files, except ignored ones."""
    environment = without_repository_variables(os.environ)
    status, output, complaint = status_of(
        _absolute(path), environment, PATIENCE, untracked="normal"
    )
    if status != 0:
        raise_complaint("path", status, complaint)
    return not output


def _disabled_filters(folder: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Settings that override the repository's filters; raises InvalidValue if that cannot be."""
    try:
        return without_filters(folder, environment, PATIENCE)
    except ValueError as error:
        raise InvalidValue("worktree", f"{error}; nothing was removed") from error


def _git_outside(facts: GitFacts, folder: str) -> list[str]:
    """The arguments to start git in a folder of the repository outside this worktree."""
    if facts.top_level != folder:
        return ["-C", folder_for_git(facts)]
    # A bare repository is not found by looking here: the worktree names it, and git would use it.
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
    status, output, _ = ask_git(git, environment)
    # Git also accepts `@{-1}` for the previous branch, and prints that branch's name.
    if status != 0 or output != os.fsencode(branch) + b"\n":
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
    """The parent folders that git will create for this one, deepest first."""
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


def _start_commit(
    facts: GitFacts, branch: str, base: str | None, environment: Mapping[str, str]
) -> str | None:
    """The commit at which a new branch starts; None for a branch that exists already.

    Raises InvalidValue for a base that is no commit, or that is given for an existing branch.
    """
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
    raise InvalidValue("base", f"{base!r} is not a commit of this repository")


def _commit(facts: GitFacts, name: str, environment: Mapping[str, str]) -> str | None:
    """The hash of the commit with this name, as seen from this worktree; None if there is none."""
    if not name or name.startswith("-") or "\0" in name:
        return None
    wanted = ["rev-parse", "--verify", "--quiet", f"{name}^{{commit}}"]
    status, output, complaint = ask_git(["-C", folder_for_git(facts), *wanted], environment)
    if status == 0:
        return output.decode("ascii").strip()
    if status != 1 and name == "HEAD":
        raise_complaint("git", status, complaint)
    return None


def _was_added(facts: GitFacts, folder: str) -> bool:
    """Whether the worktree was added anyway: git also fails if only a hook failed at the end."""
    found = [each for each in list_worktrees(facts) if each.path == folder]
    return any(each.locked is None and each.prunable is None for each in found)


def _undo_worktree(facts: GitFacts, folder: str, environment: Mapping[str, str]) -> None:
    """Remove what git leaves only if it was killed: a worktree locked as `initializing`."""
    if any(each.path == folder and each.locked == "initializing" for each in list_worktrees(facts)):
        git = [*_git_outside(facts, folder), "worktree", "remove", "--force", "--force"]
        status, _, complaint = run_git([*git, "--", folder], environment, hardened={})
        if status != 0:
            raise_complaint("worktree", status, complaint)


def _undo_branch(facts: GitFacts, branch: str, begin: str, environment: Mapping[str, str]) -> None:
    """Remove the branch that a failed `git worktree add` leaves, unless somebody uses it."""
    ref = f"refs/heads/{branch}"
    unmoved = _commit(facts, ref, environment) == begin
    if unmoved and not any(each.branch == branch for each in list_worktrees(facts)):
        git = ["-C", folder_for_git(facts), "update-ref", "-d", ref, begin]
        status, _, complaint = run_git(git, environment)
        if status != 0:
            raise_complaint("branch", status, complaint)
