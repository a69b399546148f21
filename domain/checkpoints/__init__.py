"""Checkpoints of workflows, and previews of their values."""
