"""The repositories' settings files that this user has read and trusts.

Each is identified by its content: a changed file, and the same file in another repository, must be
trusted again. The copies of one repository's file in all its worktrees are trusted together.
"""

import os
from hashlib import sha256
from pathlib import Path

from herdbook.adapters.user_state.dirs import make_private, state_folder
from herdbook.adapters.user_state.settings import read_bytes


def _mark(file: Path, repository: str) -> Path:
    parts = (os.fsencode(repository), os.fsencode(file.name), read_bytes(file))
    name = sha256(b"".join(sha256(part).digest() for part in parts)).hexdigest()
    return state_folder() / "trusted" / name


def is_trusted(file: Path, repository: str) -> bool:
    """Whether the user has trusted this file with its current content in this repository."""
    return _mark(file, repository).exists()


def trust(file: Path, repository: str) -> None:
    """Trust this file with its current content."""
    mark = _mark(file, repository)
    make_private(mark.parent)
    mark.touch(mode=0o600)


def revoke(file: Path, repository: str) -> None:
    """Stop trusting this file."""
    _mark(file, repository).unlink(missing_ok=True)
