"""What makes coding agents learn Herdbook by themselves."""

from herdbook.entrypoints.operations.model import Operation, Parameter, argument, flag, rows_of

ROWS = rows_of(
    "setup",
    Operation(
        "setup",
        "set a coding agent up: hooks, MCP server, instructions and skill, for all worktrees",
        "herdbook setup claude-code",
        (
            argument(
                "host",
                "the coding agent",
                choices=("claude-code", "codex", "opencode", "cursor", "agy"),
            ),
            flag("user", "for all repositories of this user, without instructions in this one"),
            flag("undo", "undo it exactly"),
            flag("preview", "show the changes without making them"),
        ),
        view="hooks.views:changes",
        local=True,
    ),
    Operation(
        "onboard",
        "put a section about Herdbook into AGENTS.md or CLAUDE.md, or update it",
        "herdbook onboard --preview",
        (
            Parameter("file", "the file; default: the one that has it, else AGENTS.md, CLAUDE.md"),
            flag("remove", "remove the section, and nothing else"),
            flag("preview", "show the changes without making them"),
        ),
        view="hooks.views:changes",
        local=True,
    ),
    Operation(
        "plugin.path",
        "write the plugin folder for this version and print its path",
        "herdbook plugin path",
        (flag("portable", "the folder in it for hosts that read Agent Plugins 1.0"),),
        code="setup.handlers:plugin_path",
        view="setup.views:plugin_path",
        local=True,
    ),
)
