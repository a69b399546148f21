"""MCP servers in the settings of coding agents (Claude Code, Codex, Cursor): files and our entry.

A command that names a file of this machine is only written into the user's own settings. A
project's file may be shared, so its command is `herdbook`, found on the PATH.
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from herdbook.domain.errors import InvalidValue
from herdbook.domain.location.areas import Area
from herdbook.entrypoints.hooks.file_changes import (
    ChangePlan,
    FileChange,
    SettingsFile,
    content,
    require_inside,
    rewrite_text,
    saved_original,
)
from herdbook.entrypoints.hooks.jsonc import JsonPart, add_member, parse_jsonc, remove_member
from herdbook.entrypoints.mcp import toml_text

NAME = "herdbook"
_SERVERS = "mcpServers"
_FORWARDED = (
    *(f"HERDBOOK_{each}" for each in ("AGENT", "SESSION", "USER", "STORE", *map(str.upper, Area))),
    *(f"XDG_{each}_HOME" for each in ("CONFIG", "DATA", "STATE")),
)
"""Variables that Codex passes on only if they are listed: who acts, and where stores are."""
_START_TIMEOUT = 30
_ANSWER_TIMEOUT = 660
"""Seconds that Codex waits for a start and for an answer: `listen` may wait for ten minutes."""


def settings_file(
    target: str, root: Path, variables: Mapping[str, str], *, user: bool
) -> SettingsFile:
    """The file for a server: of a project, or of the user for all projects.

    Raises InvalidValue for an unknown target, and if links lead a project's file out of it.
    """
    found = _settings_file(target, root, variables, user=user)
    if not user:
        require_inside(found.path, root)
    return found


def _settings_file(
    target: str, root: Path, variables: Mapping[str, str], *, user: bool
) -> SettingsFile:
    home = Path(variables.get("HOME") or Path.home())
    match target, user:
        case "claude-code", False:
            return SettingsFile(root / ".mcp.json", private=False)
        case "claude-code", True:
            own = Path(variables.get("CLAUDE_CONFIG_DIR") or home)
            return SettingsFile(own / ".claude.json", private=True)
        case "codex", False:
            return SettingsFile(root / ".codex" / "config.toml", private=False)
        case "codex", True:
            own = Path(variables.get("CODEX_HOME") or home / ".codex")
            return SettingsFile(own / "config.toml", private=True)
        case "cursor", False:
            return SettingsFile(root / ".cursor" / "mcp.json", private=False)
        case "cursor", True:
            return SettingsFile(home / ".cursor" / "mcp.json", private=True)
    raise InvalidValue("target", f"{target!r} is not one of claude-code, codex, cursor")


def install(target: str, there: SettingsFile) -> ChangePlan:
    """The changes that install our server; none if it is installed already.

    Raises InvalidValue if the file cannot be understood, or has a server of another program by our
    name.
    """
    now = content(there.path)
    wanted = server_entry(target, there)
    put = _add_to_toml if target == "codex" else _add_to_json
    after = rewrite_text(there.path, now, lambda text: put(text, wanted))
    if after == now:
        return ChangePlan([], _notes(target, there))
    base = _remove_ours(target, there.path, now)
    return ChangePlan([FileChange(there.path, now, after, base)], _notes(target, there))


def uninstall(target: str, there: SettingsFile) -> ChangePlan:
    """The changes that restore the file, except for what others changed in it since."""
    now = content(there.path)
    before = _remove_ours(target, there.path, now)
    return ChangePlan([] if before == now else [FileChange(there.path, now, before, before)], [])


def server_entry(target: str, there: SettingsFile) -> dict[str, Any]:
    """The entry of our server in the settings of a target."""
    command, *words = _program() if there.private else ["herdbook"]
    if target == "codex":
        return {
            "command": command,
            "args": [*words, "mcp"],
            "env_vars": list(_FORWARDED),
            "startup_timeout_sec": _START_TIMEOUT,
            "tool_timeout_sec": _ANSWER_TIMEOUT,
        }
    return {"type": "stdio", "command": command, "args": [*words, "mcp"]}


def _program() -> list[str]:
    """The command of this installation of Herdbook."""
    program = Path(sys.executable).with_name("herdbook")
    if program.is_file():
        return [str(program)]
    # Without -P a module in the working folder could replace one of ours.
    return [sys.executable, "-P", "-m", "herdbook.entrypoints"]


def _remove_ours(target: str, path: Path, now: bytes | None) -> bytes | None:
    unchanged, before = saved_original(path, now)
    if unchanged or now is None:
        return before if unchanged else None
    take = _remove_from_toml if target == "codex" else _remove_from_json
    return rewrite_text(path, now, take)


def is_ours(found: object) -> bool:
    """Whether an entry was written by Herdbook, on any machine."""
    if not isinstance(found, dict) or not isinstance(found.get("args"), list):
        return False
    words = [found.get("command"), *found["args"]]
    by_name = len(words) == 2 and Path(str(words[0])).name == "herdbook"  # noqa: PLR2004 - it and `mcp`
    by_module = words[-3:-1] == ["-m", "herdbook.entrypoints"]
    return words[-1] == "mcp" and (by_name or by_module)


def _notes(target: str, there: SettingsFile) -> list[str]:
    notes = []
    if not there.private:
        notes.append("this file may be shared, so it calls `herdbook`, which must be on the PATH")
    if target == "codex" and not there.private:
        notes.append("Codex reads this file only in projects that you trust there")
    if target == "claude-code" and not there.private:
        notes.append("Claude Code asks you once before it starts a server of a project")
    return notes


def _add_to_toml(text: str, wanted: Mapping[str, Any]) -> str:
    return toml_text.add_server(text, NAME, wanted, is_ours)


def _remove_from_toml(text: str) -> str:
    return toml_text.remove_server(text, NAME, is_ours)


def _add_to_json(text: str, wanted: Mapping[str, Any]) -> str:
    """The text with our server in it; ValueError with the reason if that is not possible."""
    if not text.strip():
        return add_member("{}\n", parse_jsonc("{}\n"), _SERVERS, {NAME: wanted})
    servers = _servers(text)
    there = None if servers is None else servers.member(NAME)
    if there is not None:
        if not is_ours(there.value):
            raise ValueError(f"has a server `{NAME}` of somebody else")
        wanted = {**there.value, **wanted}  # what somebody added to it stays
        if wanted == there.value:
            return text
        text = _remove_from_json(text)
        servers = _servers(text)
    if servers is None:
        return add_member(text, parse_jsonc(text), _SERVERS, {NAME: wanted})
    return add_member(text, servers, NAME, wanted)


def _remove_from_json(text: str) -> str:
    """The text without our server, and without an object that held only it."""
    servers = _servers(text) if text.strip() else None
    there = None if servers is None else servers.member(NAME)
    if servers is None or there is None or not is_ours(there.value):
        return text
    names = [name for name, _ in servers.members]
    if len(names) > 1:
        return remove_member(text, servers, len(names) - 1 - names[::-1].index(NAME))
    whole = parse_jsonc(text)
    return remove_member(text, whole, [name for name, _ in whole.members].index(_SERVERS))


def _servers(text: str) -> JsonPart | None:
    whole = parse_jsonc(text)
    if not isinstance(whole.value, dict):
        raise ValueError("is not an object")  # noqa: TRY004 - what somebody wrote, not how we called
    servers = whole.member(_SERVERS)
    if servers is not None and not isinstance(servers.value, dict):
        raise ValueError(f"has `{_SERVERS}` that are not an object")
    return servers
