"""`copy`, `merge` and `check`."""
