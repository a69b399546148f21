"""Use cases on the journal: watch it, and undo a transaction."""
