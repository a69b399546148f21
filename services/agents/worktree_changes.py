"""Git worktrees that are made and taken down, with what Herdbook keeps of them."""

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
    """The ids of all worktrees there ever were."""
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
    """Make a git worktree with an identity of its own; the facts about it.

    Git uses a name again, but its history is another one's: an identity that is `known` is not
    given again. What git refuses is InvalidValue, and then nothing was made.
    """
    made = worktrees.add(facts, path, branch, base)
    identity = worktree_id(made)
    while identity in known:
        identity = worktree_id(made._replace(machine_id=f"{made.machine_id} {identity}"))
    git.pin(made, repository_id(made), identity)
    return made


def choose(listed: Sequence[GitWorktree], asked: str, path: str) -> GitWorktree:
    """The worktree that somebody means by its id, path, branch or folder's name, in this order.

    `path` is what was asked for as a whole path. Raises NotFound if it is not one of them, and
    InvalidValue if it could be several.
    """
    for matches in (
        lambda each: each.worktree_id == asked,
        lambda each: each.path == path,
        lambda each: each.branch == asked,
        lambda each: Path(each.path).name == asked,
    ):
        found = [each for each in listed if matches(each)]
        if len(found) == 1:
            return found[0]
        if found:
            ids = ", ".join(each.worktree_id or each.path for each in found)
            raise InvalidValue("worktree", f"{asked!r} could be any of {ids}")
    raise NotFound("worktree", asked)


def remove(
    worktrees: GitWorktrees,
    facts: GitFacts,
    chosen: GitWorktree,
    within: WorktreeOccupants,
    archive: Callable[[], R],
    *,
    stands_in: Path,
    shown: str,
    force: bool = False,
) -> R:
    """Take a worktree down, once `archive` has put away what it keeps of its own; gives what of.

    Raises InvalidValue for the main worktree, for one whose folder is gone, and for one that the
    caller `stands_in`. Unless it is forced, raises WorktreeInUse, which names it as it is `shown`,
    while agents are at work in it or changes in it are not committed.
    """
    path = Path(chosen.path)
    if chosen.is_main or chosen.is_bare:
        raise InvalidValue("worktree", "the main worktree is the repository's own and stays")
    if chosen.prunable is not None:
        raise InvalidValue("worktree", f"{chosen.prunable}; `herdbook worktree prune` forgets it")
    if stands_in.is_relative_to(path):
        raise InvalidValue("worktree", "you are inside it; call this from another folder")
    if not force:
        if within.at_work:
            names = ", ".join(agent.name for agent in within.at_work)
            raise WorktreeInUse(shown, f"agents are at work in it: {names}")
        if not worktrees.is_clean(path):
            raise WorktreeInUse(shown, "it holds changes that are not committed")
    archived = archive()
    worktrees.remove(facts, path, force=force)
    return archived
