"""Stores as a whole: copy, merge, verify."""

from herdbook.entrypoints.operations.model import Operation, Parameter, argument, flag, rows_of

_VALUE = "a store: a URL, a path (relative to the repository's root), or the name of an area"

ROWS = rows_of(
    "stores",
    Operation(
        "copy",
        "copy a store with its journal to another place or engine",
        "herdbook copy work duckdb:///tmp/work.duckdb",
        (argument("source", _VALUE), argument("target", _VALUE)),
        local=True,
    ),
    Operation(
        "use",
        "switch this repository to another engine or server, and move its stores there",
        "herdbook use duckdb",
        (argument("backend", "lmdb, duckdb, or the URL of a server"),),
        code="stores.switch:use",
        local=True,
    ),
    Operation(
        "merge",
        "copy missing rows from one store into another",
        "herdbook merge ~/old/record.lmdb record",
        (argument("source", _VALUE), argument("target", _VALUE)),
        local=True,
    ),
    Operation(
        "check",
        "verify the integrity of the stores",
        "herdbook check --repair",
        (
            Parameter("area", "only this area", choices=("work", "checkpoints", "record")),
            flag("repair", "rebuild what can be computed from other rows"),
        ),
    ),
)
