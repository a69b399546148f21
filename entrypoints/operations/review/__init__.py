"""Review what agents did: the diff, its comments, and what waits for a review."""
