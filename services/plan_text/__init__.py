"""Use cases that read plans from text and write them as text."""
