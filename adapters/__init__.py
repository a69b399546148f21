"""Adapters: stores by URL, git, settings, the clock, ids and everything else outside.

Every engine is imported when its scheme is first used, and never by another engine.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from herdbook.adapters.stores.open_store import open_store

__all__ = ["open_store"]


def __getattr__(name: str) -> Any:
    # Opening a store imports the whole dictionary, which other adapters often do not need.
    if name == "open_store":
        from herdbook.adapters.stores.open_store import open_store  # noqa: PLC0415

        return open_store
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
