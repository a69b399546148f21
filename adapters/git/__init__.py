"""Git: which repository and worktree a folder belongs to, and the worktrees of a repository.

`facts`, `repository_root` and `pin` are here and cheap to import, because every hook calls them.
`worktrees` starts git and is imported by whoever needs it. Behind them: `place` gathers the facts,
`discovery` and `config` read git's files, `asking` asks git where that is not enough, `program`
starts it, `listing` reads its list of worktrees, `pins`, `once` and `machine` keep and find ids,
and `lock` lets one process at a time change the worktrees.
"""

from herdbook.adapters.git.pins import pin
from herdbook.adapters.git.place import facts, repository_root

__all__ = ["facts", "pin", "repository_root"]
