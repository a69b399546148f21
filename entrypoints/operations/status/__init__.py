"""`status`."""
