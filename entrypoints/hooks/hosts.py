"""Hooks of coding agents (Claude Code, Codex, OpenCode): their settings files and our entries.

A command that names a file of this machine is only written where nobody else reads it: into the
user's own settings, or into a file of a project that is not committed. Elsewhere the command is
`herdbook hook`.
"""

import json
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from herdbook.domain.errors import InvalidValue
from herdbook.entrypoints.hooks import hook, json_settings
from herdbook.entrypoints.hooks.file_changes import (
    ChangePlan,
    FileChange,
    SettingsFile,
    content,
    plan_change,
    require_inside,
    rewrite_text,
    without_ours,
)
from herdbook.entrypoints.hooks.opencode_plugin import PLUGIN
from herdbook.entrypoints.hooks.owned_files import is_sealed, seal

_CLAUDE_EVENTS = (
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "SubagentStop",
    "Stop",
    "SessionEnd",
)
_PROJECT_FILES = {
    "claude-code": (".claude/settings.local.json", True),
    "codex": (".codex/hooks.json", False),
    "opencode": (".opencode/plugins/herdbook.js", False),
}
"""The file of a project with the hooks of each host, and whether it is for this user alone."""
_CODEX_EVENTS = tuple(each for each in _CLAUDE_EVENTS if each != "PostToolUseFailure")
_TOOL_EVENTS = ("PreToolUse", "PostToolUse", "PostToolUseFailure")
_READS_PLAIN_JSON = {"claude-code": "Claude Code", "codex": "Codex"}
_PRIMED_EVENTS = ("SessionStart", "Stop")
"""Where an agent is told what it has to know: also after a compaction, and when its turn ends."""
_TIMEOUT = 5
_TIMEOUT_OF_PRIME = 10
_TIMEOUT_AT_THE_END = 3
"""Seconds; Codex reports more than this as an error, in every session."""


def local_command(event: str) -> str:
    """The fastest command for the hook on this machine."""
    return shlex.join([sys.executable, "-I", "-S", str(Path(hook.__file__).resolve()), event])


def portable_command(event: str) -> str:
    """The command for the hook that works on every machine."""
    return shlex.join(["herdbook", "hook", event])


def prime_command(target: str, *, private: bool) -> str:
    """The command that tells an agent of a host what it has to know."""
    program = program_words() if private else ["herdbook"]
    return shlex.join([*program, "prime", "--hook-json", "-", "--for", target])


def program_words() -> list[str]:
    """The command of this installation of Herdbook."""
    program = Path(sys.executable).with_name("herdbook")
    if program.is_file():
        return [str(program)]
    # Without -P a module in the working folder could replace one of ours.
    return [sys.executable, "-P", "-m", "herdbook.entrypoints"]


def settings_file(
    target: str, root: Path, variables: Mapping[str, str], *, user: bool
) -> SettingsFile:
    """The file for an agent's hooks: of a project, or of the user for all projects.

    Raises InvalidValue for an unknown target, and if links lead a project's file out of it.
    """
    if target not in _PROJECT_FILES:
        raise InvalidValue("target", f"{target!r} is not one of {', '.join(_PROJECT_FILES)}")
    if not user:
        name, private = _PROJECT_FILES[target]
        require_inside(root / name, root)
        return SettingsFile(root / name, private=private)
    home = Path(variables.get("HOME") or Path.home())
    config = Path(variables.get("XDG_CONFIG_HOME") or home / ".config")
    own = {
        "claude-code": Path(variables.get("CLAUDE_CONFIG_DIR") or home / ".claude")
        / "settings.json",
        "codex": Path(variables.get("CODEX_HOME") or home / ".codex") / "hooks.json",
        "opencode": config / "opencode" / "plugins" / "herdbook.js",
    }
    return SettingsFile(own[target], private=True)


def install(target: str, there: SettingsFile) -> ChangePlan:
    """The changes that install our hooks; none if they are installed already.

    Raises InvalidValue if the file cannot be understood or is not as Herdbook writes it.
    """
    now = content(there.path)
    if target == "opencode":
        if now is not None and not is_sealed(now):
            raise _not_ours(there.path)
        base = None
        after = seal(PLUGIN, "//")
    else:
        groups = hook_groups(target, there)

        def put(text: str) -> str:
            return json_settings.add_hooks(text, groups)

        base, after = now, rewrite_text(there.path, now, put)
        if after != now:
            base = _remove_ours(there.path, now)
            after = rewrite_text(there.path, base, put)
    changes = [] if after == now else [FileChange(there.path, now, after, base)]
    return ChangePlan(changes, _notes(target, there, after))


def uninstall(target: str, there: SettingsFile) -> ChangePlan:
    """The changes that restore the file, except for what others changed in it since."""
    now = content(there.path)
    if now is None:
        return ChangePlan([], [])
    if target == "opencode":
        if not is_sealed(now):
            raise _not_ours(there.path)
        before = None
    else:
        before = _remove_ours(there.path, now)
    return plan_change(there.path, now, before, before)


def _remove_ours(path: Path, now: bytes | None) -> bytes | None:
    return without_ours(path, now, json_settings.remove_hooks)


def _notes(target: str, there: SettingsFile, after: bytes) -> list[str]:
    notes = []
    if target in _READS_PLAIN_JSON and not _is_plain_json(after):
        notes.append(
            f"{_READS_PLAIN_JSON[target]} reads plain JSON only: as long as there are comments "
            "or trailing commas in this file, it runs no hook of it"
        )
    if target == "codex":
        notes.append("Codex skips new and changed hooks until you trust them: see /hooks there")
    if not there.private and target != "opencode":
        notes.append("this file may be shared, so it calls `herdbook`, which must be on the PATH")
    return notes


def _is_plain_json(data: bytes) -> bool:
    try:
        json.loads(data)
    except ValueError:
        return False
    return True


def hook_groups(target: str, there: SettingsFile) -> dict[str, dict[str, Any]]:
    """Our group of commands for each event of Claude Code or Codex."""
    command = local_command if there.private else portable_command
    groups = {}
    for event in _CLAUDE_EVENTS if target == "claude-code" else _CODEX_EVENTS:
        timeout = _TIMEOUT_AT_THE_END if event == "SessionEnd" else _TIMEOUT
        # Claude Code could go on without waiting (`async`), but what it has not waited for it ends
        # with itself, and the last tools of a session would be missing.
        # The word tells whose event it is: Claude Code and Codex send the same.
        entry = {"type": "command", "command": command(f"{target}:{event}"), "timeout": timeout}
        matcher = {"matcher": "*"} if event in _TOOL_EVENTS else {}
        entries = [entry]
        if event in _PRIMED_EVENTS:
            told = prime_command(target, private=there.private)
            entries.append({"type": "command", "command": told, "timeout": _TIMEOUT_OF_PRIME})
        groups[event] = {**matcher, "hooks": entries}
    return groups


def _not_ours(path: Path) -> InvalidValue:
    return InvalidValue(str(path), "is not as Herdbook writes it. Nothing was changed")
