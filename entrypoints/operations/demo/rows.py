"""The demo."""

from herdbook.entrypoints.operations.model import Operation, Parameter, flag

ROWS: tuple[Operation, ...] = (
    Operation(
        "demo",
        "watch five agents share the work on a repository, in a folder of their own",
        "herdbook.entrypoints.demo.run:demo",
        "demo.views:show",
        "herdbook demo --keep",
        (
            Parameter(
                "pace",
                "how long things take: slow is for an audience",
                choices=("fast", "normal", "slow"),
                default="normal",
            ),
            flag("keep", "keep the folder, to look at what is in it"),
        ),
        local=True,
        follows=True,
        live="demo.views:live",
    ),
)
