"""Commands of agents, accounts and logs."""
