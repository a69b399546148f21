"""Ways in for other programs."""

from herdbook.entrypoints.operation import Operation, Parameter, flag

ROWS: tuple[Operation, ...] = (
    Operation(
        "rpc",
        "serve editors and other programs by JSON-RPC, on standard input and output",
        "herdbook.entrypoints.commands.rpc:serve",
        "herdbook.entrypoints.screens.hooks:nothing",
        "herdbook rpc",
        local=True,
    ),
    Operation(
        "mcp",
        "serve tools to a coding agent over MCP, or install that into one",
        "herdbook.entrypoints.commands.mcp:mcp",
        "herdbook.entrypoints.screens.mcp:told",
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
