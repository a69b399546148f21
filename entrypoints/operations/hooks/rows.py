"""Hooks: how coding agents and git tell what happens."""

from herdbook.entrypoints.operations.model import Operation, Parameter

_WHERE = (
    Parameter(
        "target",
        "into what",
        positional=True,
        required=True,
        choices=("claude-code", "codex", "opencode", "git"),
    ),
    Parameter("project", "for this project; so it is by default", kind="flag"),
    Parameter("user", "for all projects of this user", kind="flag"),
    Parameter("preview", "show the difference and change nothing", kind="flag"),
)

ROWS: tuple[Operation, ...] = (
    Operation(
        "hooks.install",
        "let a coding agent or git tell Herdbook what happens",
        "hooks.handlers:install",
        "hooks.views:changed",
        "herdbook hooks install claude-code --project",
        _WHERE,
        local=True,
    ),
    Operation(
        "hooks.uninstall",
        "take Herdbook's hooks out again, and leave all else as it is",
        "hooks.handlers:uninstall",
        "hooks.views:changed",
        "herdbook hooks uninstall claude-code --project",
        _WHERE,
        local=True,
    ),
    Operation(
        "hook",
        "write down an event that a hook tells on standard input",
        "hooks.handlers:spool",
        "hooks.views:nothing",
        "herdbook hook PostToolUse",
        (Parameter("event", "what happened", positional=True),),
        local=True,
    ),
)
