"""Adds and removes git worktrees, with the identities and stores that Herdbook keeps for them."""

from collections.abc import Callable, Container, Sequence
from os import PathLike
from pathlib import Path
from typing import TypeVar

from herdbook.domain.errors import InvalidValue, NotFound, WorktreeInUse
from herdbook.domain.location.identity import GitFacts, repository_id, worktree_id
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.ports.world.git import Git, GitWorktree, GitWorktrees
from herdbook.services.agents.worktrees import WorktreeOccupants

R = TypeVar("R")


def known_ids(uow: UnitOfWork) -> set[str]:
    """The ids of all worktrees that were ever recorded."""
    return {each.id for each in uow.worktrees.page()}


def add(
    git: Git,
    worktrees: GitWorktrees,
    facts: GitFacts,
    path: str | PathLike[str],
    *,
    branch: str,
    base: str | None,
    known: Container[str],
) -> GitFacts:
    """Add a git worktree with an identity of its own; returns its facts.

    Git reuses the names of removed worktrees, whose history belongs to another worktree, so an
    identity that is `known` is not given again. Raises InvalidValue if git refuses; then nothing
    was added.
    """
    added = worktrees.add(facts, path, branch, base)
    identity = worktree_id(added)
    while identity in known:
        identity = worktree_id(added._replace(machine_id=f"{added.machine_id} {identity}"))
    git.pin(added, repository_id(added), identity)
    return added


def choose(worktrees: Sequence[GitWorktree], value: str, path: str) -> GitWorktree:
    """The worktree that a value names: by id, path, branch or folder's name, in this order.

    `path` is the value as an absolute path. Raises NotFound if no worktree matches, and
    InvalidValue if several do.
    """
    for matches in (
        lambda each: each.worktree_id == value,
        lambda each: each.path == path,
        lambda each: each.branch == value,
        lambda each: Path(each.path).name == value,
    ):
        found = [each for each in worktrees if matches(each)]
        if len(found) == 1:
            return found[0]
        if found:
            ids = ", ".join(each.worktree_id or each.path for each in found)
            raise InvalidValue("worktree", f"{value!r} could be any of {ids}")
    raise NotFound("worktree", value)


def remove(
    worktrees: GitWorktrees,
    facts: GitFacts,
    chosen: GitWorktree,
    occupants: WorktreeOccupants,
    archive: Callable[[], R],
    *,
    cwd: Path,
    display_path: str,
    force: bool = False,
) -> R:
    """Remove a worktree after `archive` has saved its own stores; returns what `archive` returns.

    Raises InvalidValue for the main worktree, for one whose folder is gone, and for one that
    contains `cwd`. Without `force`, raises WorktreeInUse, with the `display_path`, while agents are
    at work in it or changes in it are not committed.
    """
    path = Path(chosen.path)
    if chosen.is_main or chosen.is_bare:
        raise InvalidValue("worktree", "the main worktree is the repository's own and stays")
    if chosen.prunable is not None:
        raise InvalidValue("worktree", f"{chosen.prunable}; `herdbook worktree prune` forgets it")
    if cwd.is_relative_to(path):
        raise InvalidValue("worktree", "you are inside it; call this from another folder")
    if not force:
        if occupants.at_work:
            names = ", ".join(agent.name for agent in occupants.at_work)
            raise WorktreeInUse(display_path, f"agents are at work in it: {names}")
        if not worktrees.is_clean(path):
            raise WorktreeInUse(display_path, "it holds changes that are not committed")
    archived = archive()
    worktrees.remove(facts, path, force=force)
    return archived
