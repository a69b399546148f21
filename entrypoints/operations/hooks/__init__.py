"""Commands of hooks."""
