"""The markers of halted agents, into which the hook looks before a tool is used.

One small file for each session, and one for the agent: whoever starts a new session under its name
is halted in it from the first tool on. What a marker holds is the reason that the agent is told.
"""

from collections.abc import Mapping
from pathlib import Path

from herdbook.adapters.folders import make_private, state_folder, write_private

_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")
_LONGEST = 200


def folder() -> Path:
    """Where the markers lie; `hook.py` finds the same folder without asking here."""
    return state_folder() / "halted"


def marker(session: str) -> str:
    """The name of a session's marker; a test holds it to what `hook.py` looks for."""
    data = session.encode("utf-8", "backslashreplace")
    return "".join(chr(each) if each in _PLAIN else f"%{each:02X}" for each in data)[:_LONGEST]


def agent_marker(agent: str) -> str:
    """The name of an agent's marker, which no session's can be."""
    return "agent=" + marker(agent)


def halt_only(sessions: Mapping[str, str], agents: Mapping[str, str] | None = None) -> None:
    """Let these sessions and agents be halted, each for its reason, and no others."""
    wanted = {marker(session): reason for session, reason in sessions.items() if session}
    wanted |= {agent_marker(agent): reason for agent, reason in (agents or {}).items()}
    there = folder()
    if wanted:
        make_private(there)
    for name, reason in wanted.items():
        write_private(there / name, reason)
    for each in there.iterdir() if there.is_dir() else ():
        if each.name not in wanted and not each.name.startswith("."):  # another's draft
            each.unlink(missing_ok=True)
