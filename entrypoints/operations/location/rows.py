"""Where the stores are, the settings, and which of them are trusted."""

from herdbook.entrypoints.operations.model import Operation, argument, flag, rows_of

ROWS = rows_of(
    "location",
    Operation(
        "where", "show where each store is, and which rule decided it", "herdbook where --json"
    ),
    Operation("config", "show the effective settings and where each one is set", "herdbook config"),
    Operation(
        "trust",
        "trust this repository's settings file, or a store that came with it",
        "herdbook trust",
        (
            argument("store", "a store to trust instead: an area, a path or a URL", required=False),
            flag("new", "accept that the store is gone, and start with an empty one"),
            flag("revoke", "revoke the trust"),
        ),
        local=True,
    ),
)
