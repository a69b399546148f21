"""`advise` and `recall`."""
