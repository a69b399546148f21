"""Use cases of agents: their lifecycle, accounts, logs and worktrees."""
