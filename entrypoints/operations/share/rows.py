"""`share`."""

from herdbook.entrypoints.operations.model import AT, Operation, Parameter, argument, flag, rows_of

PAGES = (
    "now",
    "board",
    "graph",
    "task",
    "agents",
    "lanes",
    "history",
    "record",
    "health",
    "talk",
    "review",
)
"""The pages of the dashboard that can be shared."""

ROWS = rows_of(
    "share",
    Operation(
        "share",
        "write a page of the dashboard as one HTML file, which needs no server and no scripts",
        "herdbook share board -o board.html",
        (
            argument("page", "the page", choices=PAGES),
            argument(
                "key", "the task, thread or review that the page is of: its id", required=False
            ),
            Parameter("output", "the file to write", kind="path", required=True, short="o"),
            flag("force", "replace the file if it is there already"),
            AT,
        ),
        local=True,
    ),
)
