"""Commands of git worktrees."""
