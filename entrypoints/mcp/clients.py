"""Where coding agents keep their servers, and what is to stand there: Claude Code, Codex, Cursor.

What names a file of this machine goes only into the user's own settings. A project's file may be
shared, so it names `herdbook`, wherever that is.
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from herdbook.domain.errors import InvalidValue
from herdbook.domain.location.areas import Area
from herdbook.entrypoints.hooks.file_changes import (
    Change,
    Plan,
    content,
    remembered,
    require_inside,
    rewritten,
)
from herdbook.entrypoints.hooks.jsonc import Part, parsed, with_member, without_member
from herdbook.entrypoints.mcp import toml_text

NAME = "herdbook"
_SERVERS = "mcpServers"
_FORWARDED = (
    *(f"HERDBOOK_{each}" for each in ("AGENT", "SESSION", "USER", "STORE", *map(str.upper, Area))),
    *(f"XDG_{each}_HOME" for each in ("CONFIG", "DATA", "STATE")),
)
"""What Codex hands on to a server only when it is told to: who acts, and where things are."""
_STARTED_IN = 30
_ANSWERED_IN = 660
"""In how many seconds Codex must have heard of us: a listener may wait for ten minutes."""


class Site(NamedTuple):
    """A file of an agent's, and whether it is for this user alone."""

    path: Path
    private: bool


def site(target: str, root: Path, variables: Mapping[str, str], *, user: bool) -> Site:
    """The file into which a server goes, for a project or for all of a user's.

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
            return Site(root / ".mcp.json", private=False)
        case "claude-code", True:
            own = Path(variables.get("CLAUDE_CONFIG_DIR") or home)
            return Site(own / ".claude.json", private=True)
        case "codex", False:
            return Site(root / ".codex" / "config.toml", private=False)
        case "codex", True:
            own = Path(variables.get("CODEX_HOME") or home / ".codex")
            return Site(own / "config.toml", private=True)
        case "cursor", False:
            return Site(root / ".cursor" / "mcp.json", private=False)
        case "cursor", True:
            return Site(home / ".cursor" / "mcp.json", private=True)
    raise InvalidValue("target", f"{target!r} is not one of claude-code, codex, cursor")


def install(target: str, there: Site) -> Plan:
    """What installing changes; nothing where all is as it should be."""
    now = content(there.path)
    wanted = entry(target, there)
    put = _toml_with if target == "codex" else _json_with
    after = rewritten(there.path, now, lambda text: put(text, wanted))
    if after == now:
        return Plan([], _notes(target, there))
    base = _without_ours(target, there.path, now)
    return Plan([Change(there.path, now, after, base)], _notes(target, there))


def uninstall(target: str, there: Site) -> Plan:
    """What uninstalling changes: the file is what it was, but for what others changed since."""
    now = content(there.path)
    before = _without_ours(target, there.path, now)
    return Plan([] if before == now else [Change(there.path, now, before, before)], [])


def entry(target: str, there: Site) -> dict[str, Any]:
    """What is to stand there under our name."""
    command, *words = _program() if there.private else ["herdbook"]
    if target == "codex":
        return {
            "command": command,
            "args": [*words, "mcp"],
            "env_vars": list(_FORWARDED),
            "startup_timeout_sec": _STARTED_IN,
            "tool_timeout_sec": _ANSWERED_IN,
        }
    return {"type": "stdio", "command": command, "args": [*words, "mcp"]}


def _program() -> list[str]:
    """How this very Herdbook is called on this machine."""
    program = Path(sys.executable).with_name("herdbook")
    if program.is_file():
        return [str(program)]
    # Without -P a module of the folder it is started in could stand in for one of ours.
    return [sys.executable, "-P", "-m", "herdbook.entrypoints"]


def _without_ours(target: str, path: Path, now: bytes | None) -> bytes | None:
    unchanged, before = remembered(path, now)
    if unchanged or now is None:
        return before if unchanged else None
    take = _toml_without if target == "codex" else _json_without
    return rewritten(path, now, take)


def is_ours(found: object) -> bool:
    """Whether an entry is one that we wrote, for whichever machine."""
    if not isinstance(found, dict) or not isinstance(found.get("args"), list):
        return False
    words = [found.get("command"), *found["args"]]
    by_name = len(words) == 2 and Path(str(words[0])).name == "herdbook"  # noqa: PLR2004 - it and `mcp`
    by_module = words[-3:-1] == ["-m", "herdbook.entrypoints"]
    return words[-1] == "mcp" and (by_name or by_module)


def _notes(target: str, there: Site) -> list[str]:
    notes = []
    if not there.private:
        notes.append("this file may be shared, so it calls `herdbook`, which must be on the PATH")
    if target == "codex" and not there.private:
        notes.append("Codex reads this file only in projects that you trust there")
    if target == "claude-code" and not there.private:
        notes.append("Claude Code asks you once before it starts a server of a project")
    return notes


def _toml_with(text: str, wanted: Mapping[str, Any]) -> str:
    return toml_text.with_server(text, NAME, wanted, is_ours)


def _toml_without(text: str) -> str:
    return toml_text.without_server(text, NAME, is_ours)


def _json_with(text: str, wanted: Mapping[str, Any]) -> str:
    """The text with our server in it; ValueError says what is in the way."""
    if not text.strip():
        return with_member("{}\n", parsed("{}\n"), _SERVERS, {NAME: wanted})
    servers = _servers(text)
    there = None if servers is None else servers.member(NAME)
    if there is not None:
        if not is_ours(there.value):
            raise ValueError(f"has a server `{NAME}` of somebody else")
        wanted = {**there.value, **wanted}  # what somebody added to it stays
        if wanted == there.value:
            return text
        text = _json_without(text)
        servers = _servers(text)
    if servers is None:
        return with_member(text, parsed(text), _SERVERS, {NAME: wanted})
    return with_member(text, servers, NAME, wanted)


def _json_without(text: str) -> str:
    """The text without our server, and without what stood there only to hold it."""
    servers = _servers(text) if text.strip() else None
    there = None if servers is None else servers.member(NAME)
    if servers is None or there is None or not is_ours(there.value):
        return text
    names = [name for name, _ in servers.members]
    if len(names) > 1:
        return without_member(text, servers, len(names) - 1 - names[::-1].index(NAME))
    whole = parsed(text)
    return without_member(text, whole, [name for name, _ in whole.members].index(_SERVERS))


def _servers(text: str) -> Part | None:
    whole = parsed(text)
    if not isinstance(whole.value, dict):
        raise ValueError("is not an object")  # noqa: TRY004 - what somebody wrote, not how we called
    servers = whole.member(_SERVERS)
    if servers is not None and not isinstance(servers.value, dict):
        raise ValueError(f"has `{_SERVERS}` that are not an object")
    return servers
