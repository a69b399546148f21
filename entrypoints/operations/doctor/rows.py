"""`doctor`: what is wrong with the installation, and what to do."""

from herdbook.entrypoints.operations.model import Operation

ROWS: tuple[Operation, ...] = (
    Operation(
        "doctor",
        "check stores, journals, hooks, MCP, PATH, trust, clock, disk and spool",
        "doctor.handlers:doctor",
        "doctor.views:doctor",
        "herdbook doctor",
    ),
)
