"""`completion`."""
