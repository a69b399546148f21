"""Git: which repository and worktree a folder belongs to, and the worktrees of a repository.

`facts`, `find`, `repository_root`, `folder_for_git` and `pin` are here and cheap to import, because
every hook calls them. `worktrees` starts git and is imported by whoever needs it. They rest on
`place`, which gathers the facts; `discovery`, `files` and `config`, which read git's files;
`ownership`, which says what is believed of them; `asking`, which asks git where that is not enough;
`program`, the one place that starts it; `status` and `listing`, which read what it prints; `pins`,
`once` and `machine`, which keep and find ids; and `lock`, which lets one process at a time change
the worktrees.
"""

from herdbook.adapters.git.facts import facts, find, folder_for_git, repository_root
from herdbook.adapters.git.identity_files import pin

__all__ = ["facts", "find", "folder_for_git", "pin", "repository_root"]
