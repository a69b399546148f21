"""Use cases on backups: write a copy or a segment of a space, and restore a space from them."""
