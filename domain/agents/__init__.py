"""Agents, worktrees and the accounts that agents run on."""
