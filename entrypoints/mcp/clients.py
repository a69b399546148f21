"""MCP servers in the settings of coding agents: their files and our entry.

A command that names a file of this machine is only written into the user's own settings. A
project's file may be shared, so its command is `herdbook`, found on the PATH.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from herdbook.domain.errors import InvalidValue
from herdbook.domain.location.areas import Area
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
from herdbook.entrypoints.hooks.hosts import program_words
from herdbook.entrypoints.hooks.jsonc import JsonPart, add_member, parse_jsonc, remove_member
from herdbook.entrypoints.mcp import toml_text

NAME = "herdbook"
_FORWARDED = (
    *(f"HERDBOOK_{each}" for each in ("AGENT", "SESSION", "USER", "STORE", *map(str.upper, Area))),
    *(f"XDG_{each}_HOME" for each in ("CONFIG", "DATA", "STATE")),
)
"""Variables that Codex passes on only if they are listed: who acts, and where stores are."""
_PROJECT_FILES = {
    "claude-code": ".mcp.json",
    "codex": ".codex/config.toml",
    "cursor": ".cursor/mcp.json",
    "opencode": "opencode.json",
    "agy": ".agents/mcp_config.json",
}
TARGETS = tuple(_PROJECT_FILES)
_START_TIMEOUT = 30
_ANSWER_TIMEOUT = 660
"""Seconds that Codex waits for a start and for an answer: `listen` may wait for ten minutes."""


def settings_file(
    target: str, root: Path, variables: Mapping[str, str], *, user: bool
) -> SettingsFile:
    """The file for a server: of a project, or of the user for all projects.

    Raises InvalidValue for an unknown target, and if links lead a project's file out of it.
    """
    if target not in TARGETS:
        raise InvalidValue("target", f"{target!r} is not one of {', '.join(TARGETS)}")
    if not user:
        path = root / _PROJECT_FILES[target]
        require_inside(path, root)
        return SettingsFile(path, private=False)
    home = Path(variables.get("HOME") or Path.home())
    config = Path(variables.get("XDG_CONFIG_HOME") or home / ".config")
    own = {
        "claude-code": Path(variables.get("CLAUDE_CONFIG_DIR") or home) / ".claude.json",
        "codex": Path(variables.get("CODEX_HOME") or home / ".codex") / "config.toml",
        "cursor": home / ".cursor" / "mcp.json",
        "opencode": _existing(config / "opencode" / "opencode.json", "opencode.jsonc"),
        "agy": home / ".gemini" / "config" / "mcp_config.json",
    }
    return SettingsFile(own[target], private=True)


def _existing(path: Path, other: str) -> Path:
    """The path, or the one of the other name beside it if only that is there."""
    beside = path.with_name(other)
    return beside if beside.exists() and not path.exists() else path


def install(
    target: str, there: SettingsFile, options: Sequence[str] = (), within: str | None = None
) -> ChangePlan:
    """The changes that install our server, started with these options; none if it is installed.

    `within` is the project that Claude Code's own file has it for, in all worktrees.

    Raises InvalidValue if the file cannot be understood, or has a server of another program by our
    name.
    """
    now = content(there.path)
    wanted = server_entry(target, there, options)

    def put(text: str) -> str:
        if target == "codex":
            return toml_text.add_server(text, NAME, wanted, is_ours)
        return _add_to_json(text, server_keys(target, within), wanted)

    after = rewrite_text(there.path, now, put)
    if after == now:
        return ChangePlan([], _notes(target, there))
    base = _remove_ours(target, there.path, now, within)
    return ChangePlan([FileChange(there.path, now, after, base)], _notes(target, there))


def uninstall(target: str, there: SettingsFile, within: str | None = None) -> ChangePlan:
    """The changes that restore the file, except for what others changed in it since."""
    now = content(there.path)
    before = _remove_ours(target, there.path, now, within)
    return plan_change(there.path, now, before, before)


def server_entry(target: str, there: SettingsFile, options: Sequence[str] = ()) -> dict[str, Any]:
    """The entry of our server in the settings of a target."""
    command, *words = program_words() if there.private else ["herdbook"]
    if target == "codex":
        return {
            "command": command,
            "args": [*words, "mcp", *options],
            "env_vars": list(_FORWARDED),
            "startup_timeout_sec": _START_TIMEOUT,
            "tool_timeout_sec": _ANSWER_TIMEOUT,
        }
    if target == "opencode":
        return {"type": "local", "command": [command, *words, "mcp", *options], "enabled": True}
    return {"type": "stdio", "command": command, "args": [*words, "mcp", *options]}


def server_keys(target: str, within: str | None = None) -> tuple[str, ...]:
    """Below which keys of its settings a target has its servers."""
    servers = "mcp" if target == "opencode" else "mcpServers"
    return (servers,) if within is None else ("projects", within, servers)


def _remove_ours(
    target: str, path: Path, now: bytes | None, within: str | None = None
) -> bytes | None:
    if target == "codex":
        return without_ours(path, now, lambda text: toml_text.remove_server(text, NAME, is_ours))
    keys = server_keys(target, within)
    return without_ours(path, now, lambda text: _remove_from_json(text, keys))


def is_ours(found: object) -> bool:
    """Whether an entry was written by Herdbook, on any machine."""
    command = found.get("command") if isinstance(found, dict) else None
    more = found.get("args", []) if isinstance(found, dict) else None
    if command is None or not isinstance(more, list):
        return False
    words = [*(command if isinstance(command, list) else [command]), *more]
    if "mcp" not in words:
        return False
    program = words[: words.index("mcp")]
    by_name = len(program) == 1 and Path(str(program[0])).name == "herdbook"
    return by_name or program[-2:] == ["-m", "herdbook.entrypoints"]


def registered_command(target: str, text: str, within: str | None = None) -> str | None:
    """The program of our server in the settings of a target; None if it is not registered there.

    Where Claude Code's own file has it for a project, that is `within`. Raises ValueError if the
    text is not understood.
    """
    found: object = None
    if target == "codex":
        found = toml_text.find_server(text, NAME)
    elif text.strip():
        places = [server_keys(target), *([server_keys(target, within)] if within else [])]
        servers = [_find_object(text, keys) for keys in places]
        entries = [each.member(NAME) for each in servers if each is not None]
        found = next((each.value for each in entries if each is not None), None)
    if not isinstance(found, dict) or not is_ours(found):
        return None
    command = found["command"]
    return str(command[0] if isinstance(command, list) else command)


def _notes(target: str, there: SettingsFile) -> list[str]:
    notes = []
    if not there.private:
        notes.append("this file may be shared, so it calls `herdbook`, which must be on the PATH")
    if target == "codex" and not there.private:
        notes.append("Codex reads this file only in projects that you trust there")
    if target == "claude-code" and not there.private:
        notes.append("Claude Code asks you once before it starts a server of a project")
    return notes


def _add_to_json(text: str, keys: Sequence[str], wanted: Mapping[str, Any]) -> str:
    """The text with our server below these keys; ValueError with the reason if not possible."""
    if not text.strip():
        return add_member("{}\n", parse_jsonc("{}\n"), *_nest(keys, {NAME: wanted}))
    servers = _find_object(text, keys)
    there = None if servers is None else servers.member(NAME)
    if there is not None:
        if not is_ours(there.value):
            raise ValueError(f"has a server `{NAME}` of somebody else")
        wanted = {**there.value, **wanted}  # what somebody added to it stays
        if wanted == there.value:
            return text
        text = _remove_from_json(text, keys)
    for depth in range(len(keys), -1, -1):
        found = _find_object(text, keys[:depth])
        if found is not None:
            return add_member(text, found, *_nest([*keys[depth:], NAME], wanted))
    raise ValueError("is not an object")


def _nest(keys: Sequence[str], value: Any) -> tuple[str, Any]:
    """The first of these keys, and the value below the others."""
    for key in reversed(keys[1:]):
        value = {key: value}
    return keys[0], value


def _remove_from_json(text: str, keys: Sequence[str]) -> str:
    """The text without our server, and without objects that held only it."""
    servers = _find_object(text, keys) if text.strip() else None
    there = None if servers is None else servers.member(NAME)
    if servers is None or there is None or not is_ours(there.value):
        return text
    path = [*keys, NAME]
    for depth in range(len(keys), -1, -1):
        above = _find_object(text, keys[:depth])
        assert above is not None  # noqa: S101 - our server is below it
        if len(above.members) > 1 or depth == 0:
            names = [name for name, _ in above.members]
            return remove_member(text, above, len(names) - 1 - names[::-1].index(path[depth]))
    return text


def _find_object(text: str, keys: Sequence[str]) -> JsonPart | None:
    """The object below these keys; None if there is none, ValueError if it is something else."""
    part: JsonPart | None = parse_jsonc(text)
    for key in ("", *keys):
        if key:
            part = None if part is None else part.member(key)
        if part is not None and not isinstance(part.value, dict):
            raise ValueError(f"has `{key}` that is not an object" if key else "is not an object")
    return part
