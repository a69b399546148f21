"""`backup`, `backup list` and `restore`."""
