"""`prime`: what an agent is told when its session begins."""

from herdbook.entrypoints.operations.model import Operation, Parameter, flag, rows_of

ROWS = rows_of(
    "prime",
    Operation(
        "prime",
        "tell an agent who it is, what it holds, what waits for it, and which commands to use",
        "herdbook prime",
        (
            flag("mcp", "name the tools of the MCP server in place of commands"),
            Parameter(
                "hook_json",
                "answer a hook of a coding agent: its payload; - reads it from standard input",
            ),
            Parameter(
                "host",
                "the coding agent whose hook it answers",
                option="for",
                choices=("claude-code", "codex", "cursor", "agy", "opencode"),
                default="claude-code",
            ),
        ),
    ),
)
