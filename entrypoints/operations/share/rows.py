"""`share`."""

from herdbook.entrypoints.operations.model import AT, Operation, Parameter, flag

PAGES = ("now", "board", "graph", "task", "agents", "lanes", "history", "record")
"""The pages of the dashboard that can be shared."""

ROWS: tuple[Operation, ...] = (
    Operation(
        "share",
        "write a page of the dashboard as one HTML file, which needs no server and no scripts",
        "share.handlers:share",
        "share.views:share",
        "herdbook share board -o board.html",
        (
            Parameter("page", "the page", positional=True, required=True, choices=PAGES),
            Parameter("key", "the task, for the page of one: its id or its name", positional=True),
            Parameter("output", "the file to write", kind="path", required=True, short="o"),
            flag("force", "replace the file if it is there already"),
            AT,
        ),
        local=True,
    ),
)
