"""The record of agents over all projects: grades, standings, advice and search in past work."""
