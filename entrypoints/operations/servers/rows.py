"""Servers for editors, coding agents, browsers and other programs."""

from herdbook.entrypoints.operations.model import Operation, Parameter, argument, flag, rows_of

ROWS = rows_of(
    "servers",
    Operation(
        "rpc",
        "serve editors and other programs over JSON-RPC on standard input and output",
        "herdbook rpc",
        code="servers.rpc:serve",
        view="hooks.views:no_output",
        local=True,
    ),
    Operation(
        "broker",
        "keep the DuckDB stores of this repository open and serve them to all other processes",
        "herdbook broker",
        code="servers.broker:serve_files",
        view="hooks.views:no_output",
        local=True,
    ),
    Operation(
        "mcp",
        "serve tools to coding agents over MCP, or install the server into one",
        "herdbook mcp install claude-code --project",
        (
            argument(
                "action",
                "install or uninstall the server in a coding agent; default: serve",
                choices=("install", "uninstall"),
                required=False,
            ),
            argument(
                "target",
                "the coding agent",
                choices=("claude-code", "codex", "cursor", "opencode", "agy"),
                required=False,
            ),
            flag("project", "for this project (default)"),
            flag("user", "for all projects of this user"),
            flag("preview", "show the changes without making them"),
            Parameter(
                "tools",
                "the sets of tools to serve, separated by commas: all or core",
                default="all",
            ),
            flag("structured", "answer with every field, as structured content with a schema"),
        ),
        code="servers.mcp:mcp",
        local=True,
    ),
    Operation(
        "serve",
        "serve browsers, programs and agents over HTTP on this machine",
        "herdbook serve --no-open",
        (
            argument(
                "folders",
                "further folders to serve, besides this one",
                kind="path",
                many=True,
                required=False,
            ),
            Parameter("host", "the address to listen at", default="127.0.0.1"),
            Parameter("port", "the port; default: the first free one from 8420 on", "number"),
            Parameter("allow_host", "a name by which others call this server", many=True),
            Parameter("tls_cert", "the file with the certificate for TLS", "path"),
            Parameter("tls_key", "the file with its key", "path"),
            flag("behind_proxy", "a proxy in front of it does TLS"),
            flag("new_token", "make a new token; the old one and all cookies end"),
            flag("no_open", "do not open the page in a browser"),
            flag("stop", "end the server that runs"),
            flag("demo", "show agents at work in a temporary folder; nothing of yours is used"),
        ),
        code="servers.serve:serve",
        local=True,
    ),
)
