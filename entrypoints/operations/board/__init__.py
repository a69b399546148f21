"""`board` and `plan`."""
