"""Checkpoint storage: values shared between checkpoints, stored in pieces."""
