"""Hooks, through which coding agents and git report events."""

from herdbook.entrypoints.operations.model import Operation, Parameter

_WHERE = (
    Parameter(
        "target",
        "the program to hook into",
        positional=True,
        required=True,
        choices=("claude-code", "codex", "opencode", "git"),
    ),
    Parameter("project", "for this project (default)", kind="flag"),
    Parameter("user", "for all projects of this user", kind="flag"),
    Parameter("preview", "show the changes without making them", kind="flag"),
)

ROWS: tuple[Operation, ...] = (
    Operation(
        "hooks.install",
        "install hooks that report events to Herdbook",
        "hooks.handlers:install",
        "hooks.views:changes",
        "herdbook hooks install claude-code --project",
        _WHERE,
        local=True,
    ),
    Operation(
        "hooks.uninstall",
        "remove Herdbook's hooks, and nothing else",
        "hooks.handlers:uninstall",
        "hooks.views:changes",
        "herdbook hooks uninstall claude-code --project",
        _WHERE,
        local=True,
    ),
    Operation(
        "hook",
        "spool an event from a hook's standard input",
        "hooks.handlers:spool",
        "hooks.views:no_output",
        "herdbook hook PostToolUse",
        (Parameter("event", "the event", positional=True),),
        local=True,
    ),
)
