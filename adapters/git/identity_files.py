"""Files in the git directories with pinned identities, for every worktree and every user."""

import os
from typing import TYPE_CHECKING

from herdbook.adapters.git.write_once import read_text, write_once

if TYPE_CHECKING:
    from herdbook.domain.location.identity import GitFacts

_REPOSITORY = "herdbook-repository-id"
_WORKTREE = "herdbook-worktree-id"


def pinned_repository_id(common_dir: str) -> str | None:
    """The identity pinned for all worktrees of a repository."""
    return read_text(os.path.join(common_dir, _REPOSITORY))


def pinned_worktree_id(git_dir: str) -> str | None:
    """The identity pinned for the worktree that this git directory belongs to."""
    return read_text(os.path.join(git_dir, _WORKTREE))


def pin(facts: "GitFacts", repository_id: str, worktree_id: str) -> tuple[str, str]:
    """Write both identities unless they are pinned already; returns the pinned ones.

    Raises InvalidValue for an identity that is malformed.
    """
    from herdbook.domain.location import identity  # noqa: PLC0415 - reading pins needs none of its rules

    wanted = facts._replace(pinned_repository_id=repository_id, pinned_worktree_id=worktree_id)
    identity.repository_id(wanted)
    identity.worktree_id(wanted)
    standing = facts._replace(
        pinned_repository_id=write_once(os.path.join(facts.common_dir, _REPOSITORY), repository_id),
        pinned_worktree_id=write_once(os.path.join(facts.git_dir, _WORKTREE), worktree_id),
    )
    return identity.repository_id(standing), identity.worktree_id(standing)
