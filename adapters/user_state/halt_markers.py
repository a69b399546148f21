"""The markers of halted agents, which the hook checks before a tool is used.

One small file for each session, and one for the agent: a new session under the agent's name is
halted from its first tool on. The first line of a marker is the reason shown to the agent, the
second names the record that set it: only that record removes it again.
"""

from collections.abc import Mapping
from pathlib import Path

from herdbook.adapters.user_state.dirs import state_folder, write_private

_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")
_LONGEST = 200
_SET_BY = "record "


def folder() -> Path:
    """The folder of the markers; `hook.py` computes the same path by itself."""
    return state_folder() / "halted"


def marker_name(session: str) -> str:
    """The file name of a session's marker; a test compares it with that of `hook.py`."""
    data = session.encode("utf-8", "backslashreplace")
    return "".join(chr(each) if each in _PLAIN else f"%{each:02X}" for each in data)[:_LONGEST]


def agent_marker_name(agent: str) -> str:
    """The file name of an agent's marker; no session's marker can have it."""
    return "agent=" + marker_name(agent)


def set_halts(
    record: str, sessions: Mapping[str, str], agents: Mapping[str, str] | None = None
) -> None:
    """Set the markers of a record to these sessions and agents, each with its reason.

    `record` is the uuid of its store. Its other markers are removed; those of other records stay.
    """
    wanted = {marker_name(session): reason for session, reason in sessions.items() if session}
    wanted |= {agent_marker_name(agent): reason for agent, reason in (agents or {}).items()}
    there = folder()
    for name, reason in wanted.items():
        write_private(there / name, f"{' '.join(reason.split())}\n{_SET_BY}{record}\n")
    for each in there.iterdir() if there.is_dir() else ():
        if each.name in wanted or each.name.startswith("."):  # a temporary file of another writer
            continue
        if read_owner(each) in (record, None):
            each.unlink(missing_ok=True)


def is_marked(agent: str | None, session: str | None) -> bool:
    """Whether an agent or a session is marked as halted."""
    names = [agent_marker_name(agent)] if agent else []
    names += [marker_name(session)] if session else []
    there = folder()
    return any((there / each).exists() for each in names)


def read_owner(path: Path) -> str | None:
    """The uuid of the record that set a marker; None if it has none."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return None
    owners = [line.removeprefix(_SET_BY) for line in lines[1:] if line.startswith(_SET_BY)]
    return owners[0] if owners else None
