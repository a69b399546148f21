"""`doctor`: what is wrong with the installation, and what to do."""

from herdbook.entrypoints.operations.model import Operation, rows_of

ROWS = rows_of(
    "doctor",
    Operation(
        "doctor",
        "check stores, journals, hooks, MCP, PATH, trust, clock, disk and spool",
        "herdbook doctor",
    ),
)
