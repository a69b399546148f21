"""Tools for coding agents, over the Model Context Protocol.

`tools` lists the operations of the table that a model may use, with descriptions for it; `schemas`
has their JSON Schemas, `arguments` converts the model's arguments, and `invoke` calls the handler
as the agent and in the folder of `client_session`. None of these knows the protocol. `server` and
`roots` use the official SDK, and only the command that serves imports them. `clients` and
`toml_text` write the settings of coding agents.
"""
