"""The journal: list, follow and fold it, and hold it for a reader."""
