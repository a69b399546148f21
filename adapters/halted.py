"""The markers of halted sessions, into which the hook looks before a tool is used.

One small file each, named after the session; what it holds is the reason that the agent is told.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from herdbook.adapters.folders import make_private, state_folder

_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")
_LONGEST = 200


def folder() -> Path:
    """Where the markers lie; `hook.py` finds the same folder without asking here."""
    return state_folder() / "halted"


def marker(session: str) -> str:
    """The name of a session's marker; a test holds it to what `hook.py` looks for."""
    data = session.encode("utf-8", "backslashreplace")
    return "".join(chr(each) if each in _PLAIN else f"%{each:02X}" for each in data)[:_LONGEST]


def halt_only(reasons: Mapping[str, str]) -> None:
    """Let these sessions be halted, each for its reason, and no others."""
    wanted = {marker(session): reason for session, reason in reasons.items() if session}
    there = folder()
    if wanted:
        make_private(there)
    for name, reason in wanted.items():
        fresh = there.parent / f".halted.{os.getpid()}"
        fresh.touch(mode=0o600)
        fresh.write_text(reason, encoding="utf-8")
        fresh.replace(there / name)
    for each in there.iterdir() if there.is_dir() else ():
        if each.name not in wanted:
            each.unlink(missing_ok=True)
