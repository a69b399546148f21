"""Use cases: plain functions that take a unit of work.

One module or folder per area. Rules that need no store are in `domain`; use cases know no engine.
"""
