"""What git knows about the place somebody works in."""

from pathlib import Path
from typing import Protocol

from herdbook.domain.identity import GitFacts


class Git(Protocol):
    """Collects the facts from which repositories and worktrees get their identity."""

    def facts(self, folder: Path) -> GitFacts | None:
        """The facts about the worktree this folder lies in; None outside any repository."""

    def pin(self, facts: GitFacts, repository_id: str, worktree_id: str) -> None:
        """Write both identities into the git directories, unless others stand there already."""
