"""Named queries, one module per area."""
