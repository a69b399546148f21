"""Use cases on the journal: watch it, undo a transaction, and fold its beginning."""
