"""Import of OpenCode's agent-tracker database."""
