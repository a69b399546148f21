"""Use cases: plain functions that take a unit of work and read like a paragraph.

One module per area. They decide nothing that `domain` can decide, and know no store.
"""
