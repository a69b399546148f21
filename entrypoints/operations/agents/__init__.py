"""Commands of agents, accounts, logs and the journal."""
