"""Git: the repository and worktree of a folder, and the worktrees of a repository.

`facts`, `find`, `repository_root`, `folder_for_git` and `pin` are exported here and cheap to
import, because every hook calls them. `worktrees` starts git and is imported where it is needed.
The modules: `facts` gathers the facts; `discovery`, `git_files` and `config` read git's files;
`ownership` checks whether to trust them; `git_cli` asks git where that is not enough; `git_process`
is the only module that starts git; `status` and `worktree_list` parse its output; `identity_files`,
`write_once` and `machine_id` store and find ids; `worktree_lock` lets one process at a time change
the worktrees.
"""

from herdbook.adapters.git.facts import facts, find, folder_for_git, repository_root
from herdbook.adapters.git.identity_files import pin

__all__ = ["facts", "find", "folder_for_git", "pin", "repository_root"]
