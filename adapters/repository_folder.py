"""A folder to work in, as git and the operating system know it.

Everything is read on first use, and imported on first use.
"""

import os
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from herdbook.adapters.user_state import dirs, settings, trust
from herdbook.domain.location.identity import GitFacts, repository_id, worktree_id
from herdbook.domain.location.resolve import RepositoryPaths, is_within

if TYPE_CHECKING:
    from herdbook.ports.world.git import GitLookup

LONGEST_PRIME = 1 << 16
"""Bytes of a repository's own text for agents; a longer one is not read."""


class RepositoryFolder:
    """One folder: its repository, its worktree and the account that works there.

    Everything is read once: a later change of HEAD shows in a new object only.
    """

    def __init__(
        self,
        folder: Path,
        variables: Mapping[str, str],
        arguments: Mapping[str, str | None] | None = None,
    ) -> None:
        self.folder = folder
        self.variables = variables
        self.arguments = arguments or {}

    @cached_property
    def _lookup(self) -> "GitLookup":
        """The facts, or why the repository that exists is not used."""
        from herdbook.adapters.git import find  # noqa: PLC0415

        return find(self.folder, environment=self.variables)

    @cached_property
    def facts(self) -> GitFacts | None:
        """The git facts of this folder; None outside any repository that may be trusted."""
        return self._lookup.facts

    @property
    def repository_problem(self) -> str | None:
        """Why the repository of this folder, or its worktree, is not used; None if it is used."""
        return self._lookup.problem

    @property
    def repository_id(self) -> str | None:
        """The id of the repository; None outside any."""
        return None if self.facts is None else repository_id(self.facts)

    @property
    def worktree_id(self) -> str | None:
        """The id of the worktree; None in a bare repository and outside any."""
        if self.facts is None or self.facts.top_level is None:
            return None
        return worktree_id(self.facts)

    @cached_property
    def paths(self) -> RepositoryPaths:
        """The folders of the scopes."""
        data = str(dirs.data_folder())
        if self.facts is None:
            return RepositoryPaths(None, None, data, problem=self.repository_problem)
        from herdbook.adapters.git import repository_root  # noqa: PLC0415

        return RepositoryPaths(
            self.facts.top_level,
            repository_root(self.facts),
            data,
            self.facts.common_dir,
            self.worktree_id,
            self.repository_problem,
        )

    @property
    def prime_file(self) -> Path | None:
        """The repository's own text for agents, if it has one: a small file inside of it."""
        root = self.paths.worktree
        file = None if root is None else Path(root) / ".herdbook" / "PRIME.md"
        if root is None or file is None or not file.is_file():
            return None
        is_inside = is_within(os.path.realpath(file), os.path.realpath(root))
        return file if is_inside and file.stat().st_size <= LONGEST_PRIME else None

    def trusted_prime(self) -> str | None:
        """The repository's own text for agents, if the user has trusted it as it is now."""
        file = self.prime_file
        if file is None or self.facts is None:
            return None
        if not trust.is_trusted(file, self.facts.common_dir):
            return None
        return settings.read_bytes(file).decode("utf-8", "replace")

    @property
    def host(self) -> str:
        """The name of this machine, by which agents' processes are identified."""
        return os.uname().nodename

    @property
    def user(self) -> str:
        """The owner of the record: HERDBOOK_USER, else the account of this process.

        LOGNAME and USER are ignored: programs that hosts start get other values than a terminal
        does, and one account would have two records.
        """
        return self.variables.get("HERDBOOK_USER") or account_name()


def account_name() -> str:
    """The name of the account this process runs as; its number where it has no name."""
    import pwd  # noqa: PLC0415 - seldom needed

    number = os.getuid()
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)
