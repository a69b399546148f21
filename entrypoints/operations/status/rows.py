"""`status`: who works on what; `waiting`: what waits for a person."""

from herdbook.entrypoints.operations.model import AT, Operation, Parameter, flag, rows_of

ROWS = rows_of(
    "status",
    Operation(
        "status",
        "show who works on what, in all worktrees",
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
        "herdbook waiting",
        (AT,),
        code="status.waiting:waiting",
    ),
)
