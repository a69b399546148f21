"""Hooks, through which coding agents and git report events."""

from herdbook.entrypoints.operations.model import Operation, Parameter, argument, rows_of

_WHERE = (
    argument(
        "target", "the program to hook into", choices=("claude-code", "codex", "opencode", "git")
    ),
    Parameter("project", "for this project (default)", kind="flag"),
    Parameter("user", "for all projects of this user", kind="flag"),
    Parameter("preview", "show the changes without making them", kind="flag"),
)

ROWS = rows_of(
    "hooks",
    Operation(
        "hooks.install",
        "install hooks that report events to Herdbook",
        "herdbook hooks install claude-code --project",
        _WHERE,
        view="hooks.views:changes",
        local=True,
    ),
    Operation(
        "hooks.uninstall",
        "remove Herdbook's hooks, and nothing else",
        "herdbook hooks uninstall claude-code --project",
        _WHERE,
        view="hooks.views:changes",
        local=True,
    ),
    Operation(
        "hook",
        "spool an event from a hook's standard input",
        "herdbook hook PostToolUse",
        (argument("event", "the event", required=False),),
        code="hooks.handlers:spool",
        view="hooks.views:no_output",
        local=True,
    ),
)
