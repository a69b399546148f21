"""Where coding agents keep their hooks, and what is to stand there: Claude Code, Codex, OpenCode.

What names a file of this machine goes only where nobody else reads it: into the user's own
settings, or the file of a project that is not committed. Elsewhere stands `herdbook hook`.
"""

import json
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from herdbook.domain.errors import InvalidValue
from herdbook.entrypoints.hooks import hook, json_settings
from herdbook.entrypoints.hooks.file_changes import (
    Change,
    Plan,
    content,
    remembered,
    require_inside,
    rewritten,
)
from herdbook.entrypoints.hooks.opencode_plugin import PLUGIN
from herdbook.entrypoints.hooks.owned_files import is_sealed, sealed

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
_CODEX_EVENTS = tuple(each for each in _CLAUDE_EVENTS if each != "PostToolUseFailure")
_OF_TOOLS = ("PreToolUse", "PostToolUse", "PostToolUseFailure")
_READS_PLAIN_JSON = {"claude-code": "Claude Code", "codex": "Codex"}
_TIMEOUT = 5
_TIMEOUT_AT_THE_END = 3
"""More than this Codex calls a fault, in every session."""


class Site(NamedTuple):
    """A file of an agent's, and whether it is for this user alone."""

    path: Path
    private: bool


def installed_command(event: str) -> str:
    """The quickest way to call the hook on this machine."""
    return shlex.join([sys.executable, "-I", "-S", str(Path(hook.__file__).resolve()), event])


def typed_command(event: str) -> str:
    """The way to call the hook that holds on every machine."""
    return shlex.join(["herdbook", "hook", event])


def site(target: str, root: Path, variables: Mapping[str, str], *, user: bool) -> Site:
    """The file into which an agent's hooks go, for a project or for all of a user's.

    Raises InvalidValue for an unknown target, and where links lead a project's file out of it.
    """
    found = _site(target, root, variables, user=user)
    if not user:
        require_inside(found.path, root)
    return found


def _site(target: str, root: Path, variables: Mapping[str, str], *, user: bool) -> Site:
    home = Path(variables.get("HOME") or Path.home())
    match target, user:
        case "claude-code", False:
            return Site(root / ".claude" / "settings.local.json", private=True)
        case "claude-code", True:
            own = Path(variables.get("CLAUDE_CONFIG_DIR") or home / ".claude")
            return Site(own / "settings.json", private=True)
        case "codex", False:
            return Site(root / ".codex" / "hooks.json", private=False)
        case "codex", True:
            own = Path(variables.get("CODEX_HOME") or home / ".codex")
            return Site(own / "hooks.json", private=True)
        case "opencode", False:
            return Site(root / ".opencode" / "plugins" / "herdbook.js", private=False)
        case "opencode", True:
            config = Path(variables.get("XDG_CONFIG_HOME") or home / ".config")
            return Site(config / "opencode" / "plugins" / "herdbook.js", private=True)
    raise InvalidValue("target", f"{target!r} is not one of claude-code, codex, opencode")


def install(target: str, there: Site) -> Plan:
    """What installing changes; nothing where all is as it should be."""
    now = content(there.path)
    if target == "opencode":
        if now is not None and not is_sealed(now):
            raise _changed(there.path)
        base = None
        after = sealed(PLUGIN, "//")
    else:
        groups = _groups(target, there)
        base, after = (
            now,
            rewritten(there.path, now, lambda text: json_settings.installed(text, groups)),
        )
        if after != now:
            base = _without_ours(there.path, now)
            after = rewritten(there.path, base, lambda text: json_settings.installed(text, groups))
    changes = [] if after == now else [Change(there.path, now, after, base)]
    return Plan(changes, _notes(target, there, after))


def uninstall(target: str, there: Site) -> Plan:
    """What uninstalling changes: the file is what it was, but for what others changed since."""
    now = content(there.path)
    if now is None:
        return Plan([], [])
    if target == "opencode":
        if not is_sealed(now):
            raise _changed(there.path)
        before = None
    else:
        before = _without_ours(there.path, now)
    return Plan([] if before == now else [Change(there.path, now, before, before)], [])


def _without_ours(path: Path, now: bytes | None) -> bytes | None:
    unchanged, before = remembered(path, now)
    if unchanged or now is None:
        return before if unchanged else None
    return rewritten(path, now, json_settings.uninstalled)


def _notes(target: str, there: Site, after: bytes) -> list[str]:
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


def _groups(target: str, there: Site) -> dict[str, dict[str, Any]]:
    command = installed_command if there.private else typed_command
    groups = {}
    for event in _CLAUDE_EVENTS if target == "claude-code" else _CODEX_EVENTS:
        timeout = _TIMEOUT_AT_THE_END if event == "SessionEnd" else _TIMEOUT
        # Claude Code could go on without waiting (`async`), but what it has not waited for it ends
        # with itself, and the last tools of a session would be missing.
        entry = {"type": "command", "command": command(event), "timeout": timeout}
        matcher = {"matcher": "*"} if event in _OF_TOOLS else {}
        groups[event] = {**matcher, "hooks": [entry]}
    return groups


def _changed(path: Path) -> InvalidValue:
    return InvalidValue(str(path), "is not as Herdbook writes it. Nothing was changed")
