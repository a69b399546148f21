"""Repositories: named queries, one module per area."""
