"""Tools for coding agents, over the Model Context Protocol.

`tools` says which operations of the table a model may use, and with which words; `schemas` says
what it gives and gets; `calling` does it, as the agent and in the folder that `caller` knows. None
of these knows the protocol. `server` and `roots` speak it, with the official SDK, and are imported
by nobody but the command that serves. `clients` and `toml_text` write the settings of coding
agents.
"""
