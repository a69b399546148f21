"""`status`: who works on what; `waiting`: what waits for a person."""

from herdbook.entrypoints.operations.model import AT, Operation, Parameter, flag

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
            flag("line", "one short line, for a prompt or the status line of tmux"),
            AT,
        ),
    ),
    Operation(
        "waiting",
        "list what waits for you: questions, approvals, reviews, proposals, failures and halts",
        "status.waiting:waiting",
        "status.views:waiting",
        "herdbook waiting",
        (AT,),
    ),
)
