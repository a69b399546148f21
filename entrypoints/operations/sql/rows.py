"""SQL over a store."""

from herdbook.entrypoints.operations.model import Operation, Parameter, argument, flag, rows_of

_AREA = Parameter(
    "area",
    "the area whose store is meant",
    choices=("work", "checkpoints", "record"),
    default="work",
)

ROWS = rows_of(
    "sql",
    Operation(
        "sql",
        "run one read-only query over a store",
        'herdbook sql "SELECT status, count(*) FROM tasks GROUP BY status"',
        (
            argument("query", "the query; - reads it from standard input"),
            _AREA,
            Parameter(
                "format", "the output format", choices=("table", "csv", "json"), default="table"
            ),
            Parameter("limit", "the maximum number of rows", kind="number", default=10_000),
        ),
        local=True,
    ),
    Operation(
        "shell",
        "open the engine's SQL shell on a store",
        "herdbook shell --area record",
        (_AREA, flag("write", "allow changes to the store, which the journal will not contain")),
        local=True,
    ),
)
