"""Ports to everything else outside: clock, ids, git, processes, foreign files."""
