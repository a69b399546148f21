"""How the outside does it: stores by URL, git, the clock, ids.

Every engine is imported when its scheme is first used, and never by another engine.
"""

from herdbook.adapters.opening import open_store

__all__ = ["open_store"]
