"""Records for tests of hooks."""

OUT_OF_REACH = "postgresql://nobody@127.0.0.1:1/x?connect_timeout=1"
"""A record that no flush comes to, so that what was spooled stays where the tests look."""
