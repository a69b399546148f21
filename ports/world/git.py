"""Facts about a folder from git, and the worktrees of its repository."""

from collections.abc import Mapping
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
    """Collects the facts that identify repositories and worktrees.

    Nothing here runs a program that a repository names, fetches anything, or waits for git without
    end. Raises StoreBusy if git does not answer, StoreUnavailable where git or a file cannot be
    used.
    """

    def find(
        self, folder: str | PathLike[str], *, environment: Mapping[str, str] | None = None
    ) -> GitLookup:
        """The facts about a folder, and why an existing repository has none.

        A repository counts where git would use it: its owner is the user, or the user's own
        settings name it (`safe.directory`); a bare one that was not named, where the settings allow
        that (`safe.bareRepository`) and it is not a folder of another repository's worktree.
        """

    def facts(
        self, folder: str | PathLike[str], *, environment: Mapping[str, str] | None = None
    ) -> GitFacts | None:
        """The facts about the worktree that contains this folder; None outside any trusted one.

        - They are what git itself would say there: any sub-directory and any spelling of its path
          gives the same, a submodule is a repository of its own, and the variables a hook is
          started with count. `environment` replaces the process' own where it is given.
        - `is_bare` is about the repository, not the folder: it is also true in a linked worktree of
          a bare repository, and means that there is no main worktree. `is_main` says that the git
          directory is the repository's own and not that of a linked worktree.
        - `top_level` is None where git has no worktree: in a bare repository and inside `.git`. It
          is also None where the worktree that git would use and the repository disagree: its `.git`
          must lead to the git directory, which must not be that of another worktree.
        - `branch` is the one that HEAD names, also before its first commit; None when detached.
        - `origin_url` is the first `remote.origin.url` of the repository's own config and what that
          includes, as it is written there: no `insteadOf` is applied.
        - `root_commits` are collected only where the identity depends on them: without an origin
          and without a pin. They are those of the repository's own HEAD, so that all worktrees
          agree. A shallow clone has none, because its history is cut off somewhere.

        Raises InvalidValue for a folder that cannot be entered, and where git refuses what it finds
        (a damaged `.git` file, a format it does not know), with git's own reason.
        """

    def repository_root(self, facts: GitFacts) -> str:
        """The folder that represents the whole repository, the same from all its worktrees.

        It is the root of the main worktree, or the common git directory where there is no main
        worktree, or where that directory is elsewhere and does not say which worktree is its own.
        """

    def folder_for_git(self, facts: GitFacts) -> str:
        """The folder in which git has to be started to work with what the facts describe."""

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
    """Lists, adds and removes the worktrees of the repository that some facts describe.

    Everything that writes does so under one lock per repository, so callers in any number of
    processes queue; StoreBusy is raised after `patience` seconds. What git refuses raises
    InvalidValue with git's own reason and without its advice; StoreUnavailable means that git could
    not be started or could not use the disk. A call that raises has changed nothing.

    `add` and `remove` are git's own work, with the repository's hooks and filters. `list_worktrees`
    and `is_clean` only read, and run nothing that the repository names.
    """

    def list_worktrees(self, facts: GitFacts) -> list[GitWorktree]:
        """All worktrees, first the main one or the bare repository."""

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

    def prune(self, facts: GitFacts, *, patience: float = PATIENCE) -> list[str]:
        """Forget worktrees whose folders are gone; return the paths where those were."""

    def is_clean(self, path: str | PathLike[str]) -> bool:
        """Whether the worktree has no change and no untracked file that git does not ignore.

        Submodules are compared by their commits. A file whose time has changed and that goes
        through a filter which only the repository's config names counts as changed.
        """
