"""All changes that set one host up: hooks, MCP server, instructions and skill.

Settings go where every worktree sees them, also one that is added later by `git worktree add`.
What was tried with the hosts themselves (ADR 50): Claude Code reads the local settings and skills
of the main checkout in all its worktrees, and keeps servers by the main checkout in its own file.
Codex, OpenCode and Cursor read only the worktree they are started in and the user's own files, so
theirs are the user's; where there is no plan, hooks and `prime` say nothing.
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from herdbook.domain.errors import InvalidValue
from herdbook.entrypoints.hooks import hosts
from herdbook.entrypoints.hooks.file_changes import ChangePlan, FileChange, content, saved_original
from herdbook.entrypoints.mcp import clients
from herdbook.entrypoints.setup import cursor_hooks, instructions
from herdbook.entrypoints.setup.skill import NAME, SKILL

HOSTS = ("claude-code", "codex", "opencode", "cursor", "agy")


class SetupPlace(NamedTuple):
    """Where a host is set up: the main checkout and the worktree, if there are any; the user's."""

    main: Path | None
    worktree: Path | None
    variables: Mapping[str, str]

    @property
    def home(self) -> Path:
        """The user's home folder."""
        return Path(self.variables.get("HOME") or Path.home())


def plan_setup(host: str, place: SetupPlace, *, user: bool, undo: bool) -> ChangePlan:
    """The changes that set a host up for this repository, or for all of the user's, or undo that.

    Raises InvalidValue for an unknown host, and for files that are not understood.
    """
    if host not in HOSTS:
        raise InvalidValue("host", f"{host!r} is not one of {', '.join(HOSTS)}")
    for_repository = place.main is not None and not user
    parts = list(_parts(host, place, for_repository=for_repository, undo=undo))
    if undo:
        parts.reverse()  # so that folders are left by the last file that they were made for
    notes = [] if undo else list(_notes(host, place, for_repository=for_repository))
    return ChangePlan(
        [change for part in parts for change in part.changes],
        list(dict.fromkeys([*(note for part in parts for note in part.notes), *notes])),
    )


def _parts(
    host: str, place: SetupPlace, *, for_repository: bool, undo: bool
) -> Iterator[ChangePlan]:
    yield from _hooks(host, place, for_repository=for_repository, undo=undo)
    yield _server(host, place, for_repository=for_repository, undo=undo)
    skill = _skill_file(host, place, for_repository=for_repository)
    yield (_remove_file if undo else _add_file)(skill, SKILL)
    if for_repository and place.worktree is not None:
        name = "CLAUDE.md" if host == "claude-code" and _reads_claude_md(place.worktree) else None
        file = instructions.instructions_file(place.worktree, name)
        yield (instructions.remove_section if undo else instructions.add_section)(file)


def _hooks(
    host: str, place: SetupPlace, *, for_repository: bool, undo: bool
) -> Iterator[ChangePlan]:
    if host == "agy":
        return  # it has no hook for the start of a session
    if host == "cursor":
        file = place.home / ".cursor" / "hooks.json"
        if undo:
            yield cursor_hooks.remove_hooks(file)
        else:
            yield cursor_hooks.add_hooks(file, hosts.prime_command(host, private=True))
        return
    in_project = for_repository and host == "claude-code"
    root = place.main or place.home
    there = hosts.settings_file(host, root, place.variables, user=not in_project)
    yield (hosts.uninstall if undo else hosts.install)(host, there)


def _server(host: str, place: SetupPlace, *, for_repository: bool, undo: bool) -> ChangePlan:
    there = clients.settings_file(host, place.home, place.variables, user=True)
    within = str(place.main) if for_repository and host == "claude-code" else None
    if undo:
        return clients.uninstall(host, there, within)
    return clients.install(host, there, (), within)


def _skill_file(host: str, place: SetupPlace, *, for_repository: bool) -> Path:
    home = place.home
    folders = {
        "claude-code": Path(place.variables.get("CLAUDE_CONFIG_DIR") or home / ".claude"),
        "codex": home / ".agents",
        "opencode": Path(place.variables.get("XDG_CONFIG_HOME") or home / ".config") / "opencode",
        "cursor": home / ".cursor",
        "agy": home / ".gemini" / "config",
    }
    folder = folders[host]
    if for_repository and host == "claude-code" and place.main is not None:
        folder = place.main / ".claude"
    return folder / "skills" / NAME / "SKILL.md"


def _reads_claude_md(root: Path) -> bool:
    """Whether Claude Code has to be told in a file of its own: it reads AGENTS.md by an import."""
    own, shared = root / "CLAUDE.md", root / "AGENTS.md"
    if not own.exists():
        return not shared.exists()
    if shared.exists() and os.path.realpath(own) == os.path.realpath(shared):
        return False
    return b"@AGENTS.md" not in own.read_bytes()


def _notes(host: str, place: SetupPlace, *, for_repository: bool) -> Iterator[str]:
    if host == "agy":
        yield "agy has no hook for the start of a session: its instructions name `herdbook prime`"
    if for_repository and host != "claude-code":
        yield "its settings are your own files, which every worktree sees; they act only on a plan"
    if for_repository:
        yield "commit the instructions, so that every worktree has them"
    elif place.main is None:
        yield "this is no repository with a main checkout, so your own files are set up"


def _add_file(path: Path, text: str) -> ChangePlan:
    """The change that writes a file of ours, or brings it up to date.

    Raises InvalidValue if there is one that Herdbook did not write.
    """
    now, wanted = content(path), text.encode()
    if now == wanted:
        return ChangePlan([], [])
    if now is not None:
        _require_ours(path, now, wanted)
    return ChangePlan([FileChange(path, now, wanted, None)], [])


def _remove_file(path: Path, text: str) -> ChangePlan:
    """The change that removes a file of ours; InvalidValue if somebody has changed it."""
    now = content(path)
    if now is None:
        return ChangePlan([], [])
    _require_ours(path, now, text.encode())
    return ChangePlan([FileChange(path, now, None, None)], [])


def _require_ours(path: Path, now: bytes, wanted: bytes) -> None:
    if now != wanted and not saved_original(path, now)[0]:
        raise InvalidValue(str(path), "is not as Herdbook writes it. Nothing was changed")
