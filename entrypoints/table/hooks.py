"""Hooks: how coding agents and git tell what happens."""

from herdbook.entrypoints.operation import Operation, Parameter

_CODE, _SCREEN = "herdbook.entrypoints.commands.hooks", "herdbook.entrypoints.screens.hooks"
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
        f"{_CODE}:install",
        f"{_SCREEN}:changed",
        "herdbook hooks install claude-code --project",
        _WHERE,
        local=True,
    ),
    Operation(
        "hooks.uninstall",
        "take Herdbook's hooks out again, and leave all else as it is",
        f"{_CODE}:uninstall",
        f"{_SCREEN}:changed",
        "herdbook hooks uninstall claude-code --project",
        _WHERE,
        local=True,
    ),
    Operation(
        "hook",
        "write down an event that a hook tells on standard input",
        f"{_CODE}:spool",
        f"{_SCREEN}:nothing",
        "herdbook hook PostToolUse",
        (Parameter("event", "what happened", positional=True),),
        local=True,
    ),
)
