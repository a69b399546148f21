"""Servers for editors, coding agents and other programs."""

from herdbook.entrypoints.operations.model import Operation, Parameter, flag

ROWS: tuple[Operation, ...] = (
    Operation(
        "rpc",
        "serve editors and other programs over JSON-RPC on standard input and output",
        "servers.rpc:serve",
        "hooks.views:no_output",
        "herdbook rpc",
        local=True,
    ),
    Operation(
        "mcp",
        "serve tools to coding agents over MCP, or install the server into one",
        "servers.mcp:mcp",
        "servers.views:mcp",
        "herdbook mcp install claude-code --project",
        (
            Parameter(
                "action",
                "install or uninstall the server in a coding agent; default: serve",
                positional=True,
                choices=("install", "uninstall"),
            ),
            Parameter(
                "target",
                "the coding agent",
                positional=True,
                choices=("claude-code", "codex", "cursor"),
            ),
            flag("project", "for this project (default)"),
            flag("user", "for all projects of this user"),
            flag("preview", "show the changes without making them"),
        ),
        local=True,
    ),
)
