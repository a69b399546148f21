"""How checkpoints are stored: values shared between checkpoints, written and read in pieces."""
