"""Git worktrees that share the stores of their repository."""

from herdbook.entrypoints.operations.model import Operation, Parameter, argument, flag, rows_of

ROWS = rows_of(
    "worktrees",
    Operation(
        "worktree.add",
        "create a git worktree that shares the repository's stores",
        "herdbook worktree add login --base main",
        (
            argument("name", "the name of its folder, and of its branch unless --branch is given"),
            Parameter("branch", "the branch to check out; created if it does not exist"),
            Parameter("base", "the commit or branch that a new branch starts from"),
            Parameter("path", "its folder; default: beside the repository"),
        ),
        local=True,
    ),
    Operation(
        "worktree.list",
        "list the worktrees of this repository",
        "herdbook worktree list",
        (flag("all", "include removed worktrees that have a history"),),
    ),
    Operation(
        "worktree.remove",
        "remove a worktree; its history and checkpoints are kept",
        "herdbook worktree remove login",
        (
            argument("worktree", "its name, id, path or branch"),
            flag("force", "remove it even with uncommitted changes or running agents"),
        ),
        local=True,
    ),
    Operation(
        "worktree.prune",
        "remove git's entries of worktrees whose folders are gone",
        "herdbook worktree prune",
        local=True,
    ),
)
