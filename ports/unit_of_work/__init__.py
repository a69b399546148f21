"""One transaction: changes, integrity, projections and the journal."""
