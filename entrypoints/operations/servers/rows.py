"""Ways in for other programs."""

from herdbook.entrypoints.operations.model import Operation, Parameter, flag

ROWS: tuple[Operation, ...] = (
    Operation(
        "rpc",
        "serve editors and other programs by JSON-RPC, on standard input and output",
        "servers.rpc:serve",
        "hooks.views:nothing",
        "herdbook rpc",
        local=True,
    ),
    Operation(
        "mcp",
        "serve tools to a coding agent over MCP, or install that into one",
        "servers.mcp:mcp",
        "servers.views:told",
        "herdbook mcp install claude-code --project",
        (
            Parameter(
                "deed",
                "let a coding agent know of this server, or no longer; left out, serve",
                positional=True,
                choices=("install", "uninstall"),
            ),
            Parameter(
                "target",
                "the coding agent",
                positional=True,
                choices=("claude-code", "codex", "cursor"),
            ),
            flag("project", "for this project; so it is by default"),
            flag("user", "for all projects of this user"),
            flag("preview", "show the difference and change nothing"),
        ),
        local=True,
    ),
)
