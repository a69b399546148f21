"""The demo."""

from herdbook.entrypoints.operations.model import Operation, Parameter, flag

ROWS: tuple[Operation, ...] = (
    Operation(
        "demo",
        "run a demo: five agents share the work on a repository in a temporary folder",
        "herdbook demo --keep",
        (
            Parameter(
                "pace",
                "the speed; slow is for an audience",
                choices=("fast", "normal", "slow"),
                default="normal",
            ),
            flag("keep", "keep the folder"),
        ),
        code="herdbook.entrypoints.demo.run:demo",
        view="demo.views:show",
        local=True,
        follows=True,
        live="demo.views:live",
    ),
)
