"""Commands of checkpoints."""
