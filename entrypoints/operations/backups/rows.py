"""Backups of the stores: write, list, restore."""

from herdbook.entrypoints.operations.model import Operation, Parameter, argument, flag, rows_of

_AREAS = ("work", "checkpoints", "record")

ROWS = rows_of(
    "backups",
    Operation(
        "backup.list",
        "list the backups in a folder and verify each of them",
        "herdbook backup list",
        (
            argument(
                "folder",
                "a folder of backups; default: your own, with the daily copies",
                kind="path",
                required=False,
            ),
        ),
        local=True,
    ),
    Operation(
        "backup",
        "copy the spaces of the stores into files from which any engine can be restored",
        "herdbook backup work --to ~/backups",
        (
            argument("area", "only these areas", many=True, choices=_AREAS, required=False),
            Parameter(
                "to", "the folder to write to; default: your own, with the daily copies", "path"
            ),
            Parameter("keep", "how many copies of each space to keep", "number", default=7),
            flag("with_secrets", "also copy what is secret, such as accounts' credentials"),
            flag(
                "automatic",
                "as Herdbook does by itself: this folder's spaces, the first time of a day as a "
                "copy and then as a segment, as the settings say",
            ),
        ),
        local=True,
    ),
    Operation(
        "restore",
        "restore a backup into an empty store of any engine",
        "herdbook restore work --to duckdb:///tmp/work.duckdb",
        (
            argument(
                "backup",
                "a file of a backup, a folder of them, or the name of an area for its newest one",
            ),
            Parameter(
                "to",
                "the store to fill: a URL, a path (relative to the repository's root), or the name "
                "of an area",
                required=True,
            ),
            Parameter(
                "at", "the state after this journal entry (a number), or at this time", "position"
            ),
            Parameter(
                "salvage",
                "a damaged store, from which changes after the backup are read where they can be",
            ),
            flag("with_flaws", "also restore what `check` finds something wrong in"),
        ),
        code="backups.restore:restore",
        local=True,
    ),
)
