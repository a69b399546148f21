"""The markers of halted agents, into which the hook looks before a tool is used.

One small file for each session, and one for the agent: whoever starts a new session under its name
is halted in it from the first tool on. The first line of a marker is the reason that the agent is
told, the second says which record set it: only that one lifts it again.
"""

from collections.abc import Mapping
from pathlib import Path

from herdbook.adapters.user_state.dirs import make_private, state_folder, write_private

_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")
_LONGEST = 200
_SET_BY = "record "


def folder() -> Path:
    """Where the markers lie; `hook.py` finds the same folder without asking here."""
    return state_folder() / "halted"


def marker_name(session: str) -> str:
    """The name of a session's marker; a test holds it to what `hook.py` looks for."""
    data = session.encode("utf-8", "backslashreplace")
    return "".join(chr(each) if each in _PLAIN else f"%{each:02X}" for each in data)[:_LONGEST]


def agent_marker_name(agent: str) -> str:
    """The name of an agent's marker, which no session's can be."""
    return "agent=" + marker_name(agent)


def set_halts(
    record: str, sessions: Mapping[str, str], agents: Mapping[str, str] | None = None
) -> None:
    """Let a record halt these sessions and agents, each for its reason, and no others.

    `record` is the uuid of its store. Markers of other records stay as they are.
    """
    wanted = {marker_name(session): reason for session, reason in sessions.items() if session}
    wanted |= {agent_marker_name(agent): reason for agent, reason in (agents or {}).items()}
    there = folder()
    if wanted:
        make_private(there)
    for name, reason in wanted.items():
        write_private(there / name, f"{' '.join(reason.split())}\n{_SET_BY}{record}\n")
    for each in there.iterdir() if there.is_dir() else ():
        if each.name in wanted or each.name.startswith("."):  # another's draft
            continue
        if read_owner(each) in (record, None):
            each.unlink(missing_ok=True)


def read_owner(path: Path) -> str | None:
    """The uuid of the record that set a marker; None where it does not say."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return None
    told = [line.removeprefix(_SET_BY) for line in lines[1:] if line.startswith(_SET_BY)]
    return told[0] if told else None
