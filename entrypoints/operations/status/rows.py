"""`status`: who works on what."""

from herdbook.entrypoints.operations.model import Operation, Parameter, flag

ROWS: tuple[Operation, ...] = (
    Operation(
        "status",
        "show who works on what, in all worktrees",
        "status.handlers:status",
        "status.views:status",
        "herdbook status --worktree feature-login",
        (
            Parameter("worktree", "only this worktree: its id, path or branch"),
            flag("all", "include your other repositories"),
        ),
    ),
)
