"""The language server: review comments and agents in the margin of an editor."""
