"""Where the stores are, the settings, and which of them are trusted."""

from herdbook.entrypoints.operations.model import Operation, Parameter, flag

ROWS: tuple[Operation, ...] = (
    Operation(
        "where",
        "show where each store is, and which rule decided it",
        "location.handlers:where",
        "location.views:where",
        "herdbook where --json",
    ),
    Operation(
        "config",
        "show the effective settings and where each one is set",
        "location.handlers:config",
        "location.views:config",
        "herdbook config",
    ),
    Operation(
        "trust",
        "trust this repository's settings file, or a store that came with it",
        "location.handlers:trust",
        "location.views:trust",
        "herdbook trust",
        (
            Parameter(
                "store", "a store to trust instead: an area, a path or a URL", positional=True
            ),
            flag("new", "accept that the store is gone, and start with an empty one"),
            flag("revoke", "revoke the trust"),
        ),
        local=True,
    ),
)
