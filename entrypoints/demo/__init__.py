"""The demo: five agents, each a real process, share the work on a real repository.

`scenario` says who works on what, `sandbox` makes a folder apart from the user's own, `agent` is
the program of one agent, `run` starts, watches and grades them, and `sentences` turns journal
entries into lines.
"""
