"""Everything else outside: clock, ids, git, processes, foreign files."""
