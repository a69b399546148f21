"""The demo: five agents, each a real process, share the work on a real repository.

`scenario` says who works on what, `sandbox` makes a folder apart from the user's own and starts
agents in it, `agent` is the program of one agent, and `run` watches and grades them.
"""
