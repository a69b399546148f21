"""Facts about a folder from git, and the worktrees of its repository."""

from os import PathLike
from typing import NamedTuple, Protocol

from herdbook.domain.location.identity import GitFacts

PATIENCE = 120.0


class GitLookup(NamedTuple):
    """The facts about a folder, and what about its repository was not accepted and why.

    Without facts the problem is about the repository: it exists, and git would not use it for this
    user. With facts it is about the worktree: git would use one that the repository and the folder
    do not agree on. It is a sentence for people that something may be appended to, or None.
    """

    facts: GitFacts | None
    problem: str | None = None


class Git(Protocol):
    """Pins the identities of repositories and worktrees."""

    def pin(self, facts: GitFacts, repository_id: str, worktree_id: str) -> tuple[str, str]:
        """Write both identities into the git directories, unless others are pinned already.

        Returns the identities that are pinned now. When many processes do this at once all get the
        same answer, and a pin never changes. Raises InvalidValue for what is not an identity,
        before anything is written.
        """


class GitWorktree(NamedTuple):
    """One worktree of a repository, as the repository knows it; paths are real paths."""

    path: str
    git_dir: str | None  # None when the repository no longer knows it
    branch: str | None  # None when HEAD is detached
    head: str | None  # None before the first commit
    is_main: bool
    is_bare: bool  # the repository itself, where it has no main worktree
    locked: str | None  # the reason, empty when none was given; None when it is not locked
    prunable: str | None  # why git would forget it; None when it is in order
    worktree_id: str | None  # None when git_dir is, or when the pin there is not an identity


class GitWorktrees(Protocol):
    """Adds and removes the worktrees of the repository that some facts describe.

    Everything that writes does so under one lock per repository, so callers in any number of
    processes queue; StoreBusy is raised after `patience` seconds. What git refuses raises
    InvalidValue with git's own reason and without its advice; StoreUnavailable means that git could
    not be started or could not use the disk. A call that raises has changed nothing.

    `add` and `remove` are git's own work, with the repository's hooks and filters. `is_clean` only
    reads, and runs nothing that the repository names.
    """

    def add(
        self,
        facts: GitFacts,
        path: str | PathLike[str],
        branch: str,
        base: str | None = None,
        *,
        patience: float = PATIENCE,
    ) -> GitFacts:
        """Check a branch out into a new worktree; return the facts about that.

        A branch that does not exist begins at `base`, by default at the HEAD of the current
        worktree. One that exists is checked out as it is, and a `base` given with it is refused. So
        are a name that git refuses, a path where something exists already, and a start without any
        commit.
        """

    def remove(
        self,
        facts: GitFacts,
        path: str | PathLike[str],
        *,
        force: bool = False,
        patience: float = PATIENCE,
    ) -> None:
        """Remove a worktree and the repository's records of it; its branch stays.

        One with changes or untracked files is refused unless forced; a locked one always is.
        """

    def is_clean(self, path: str | PathLike[str]) -> bool:
        """Whether the worktree has no change and no untracked file that git does not ignore.

        Submodules are compared by their commits. A file whose time has changed and that goes
        through a filter which only the repository's config names counts as changed.
        """
