"""`import plan` and `export plan`."""
