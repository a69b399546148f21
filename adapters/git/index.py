"""Whether git tracks a path: from the index of a worktree, and from git if that is not enough.

Most repositories have no files of Herdbook in their worktree, so most answers come from one search
of the index file, which contains every tracked path as text.
"""

import os
from collections.abc import Mapping
from typing import Final

from herdbook.adapters.git.git_process import ask_git, without_repository_variables
from herdbook.domain.errors import HerdbookError
from herdbook.domain.location.identity import GitFacts

_HEADER: Final = b"DIRC"
_FULL_PATH_VERSIONS: Final = (2, 3)


def is_tracked(facts: GitFacts, path: str, environment: Mapping[str, str]) -> bool:
    """Whether git tracks a file at a path of the worktree or anything below it.

    True if that cannot be determined: the caller is about to trust what is there.
    """
    try:
        with open(os.path.join(facts.git_dir, "index"), "rb") as file:
            index = file.read()
    except FileNotFoundError:
        return False
    except OSError:
        return True
    version = int.from_bytes(index[4:8], "big")
    split = b"link" in index  # the extension by which an index in two files names the other one
    if index.startswith(_HEADER) and version in _FULL_PATH_VERSIONS and not split:
        name = os.fsencode(path)
        if name + b"/" not in index and name + b"\0" not in index:
            return False
    words = ["-C", facts.top_level or facts.git_dir, "ls-files", "-z", "--cached", "--", path]
    try:
        status, output, _ = ask_git(
            ["--literal-pathspecs", *words], without_repository_variables(environment)
        )
    except HerdbookError:
        return True
    return status != 0 or bool(output)
