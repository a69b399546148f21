"""When the sessions and agents of this user's hooks were last seen.

An event that waits in the spool tells it itself. A flush, which takes events out of the spool,
leaves an empty file for each session and agent whose time of change is that of the newest event.
"""

import os
import time
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path

from herdbook.adapters.hosts import parse_event
from herdbook.adapters.user_state import spool
from herdbook.adapters.user_state.dirs import make_private, state_folder
from herdbook.adapters.user_state.halt_markers import agent_marker_name, marker_name
from herdbook.domain.agents.model import Agent
from herdbook.domain.record.events import HookEvent, Meaning

ENDS = frozenset({"SessionEnd", "session.deleted"})
"""The events after which a session is gone."""
_DAY = 86_400.0
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def folder() -> Path:
    """The folder with a file for each session and agent that was seen in the last day."""
    return state_folder() / "seen"


class SpoolActivity:
    """The port `AgentActivity` over the spool; it is read once, when somebody asks first."""

    @cached_property
    def _waiting(self) -> dict[str, int | None]:
        return newest_events(parse_event(*each) for each in spool.read_buffered())

    def last_seen(self, agent: Agent) -> datetime | None:
        """When the agent, by its name or its session, was last seen; None if it is gone."""
        names = [agent_marker_name(agent.name)]
        names += [marker_name(agent.session_id)] if agent.session_id else []
        if any(self._waiting.get(name, 0) is None for name in names):
            return None
        times = [self._waiting.get(name) or 0 for name in names] + [
            _flush_time(each) for each in names
        ]
        newest = max(times)
        return _EPOCH + timedelta(microseconds=newest) if newest else None


def newest_events(events: Iterable[HookEvent]) -> dict[str, int | None]:
    """The time of the newest event of each agent and session, by marker; None for one that ended.

    An event that names its agent counts for the agent, else for its session.
    """
    found: dict[str, int | None] = {}
    for event in sorted(events, key=lambda each: each.at):
        if event.meaning is Meaning.REGISTRATION:
            continue
        names = [agent_marker_name(event.agent)] if event.agent else []
        names += [
            marker_name(each) for each in (event.session_id, event.environment_session) if each
        ]
        is_over = event.name.rpartition(":")[2] in ENDS
        found |= dict.fromkeys(names, None if is_over else event.at)
    return found


def note_seen(events: Iterable[HookEvent]) -> None:
    """Remember when the agents and sessions of events were last seen; drop what is a day old."""
    there = folder()
    make_private(there)
    for name, at in newest_events(events).items():
        path = there / name
        if at is None:
            path.unlink(missing_ok=True)
        elif at > _flush_time(name):
            path.touch(mode=0o600)
            os.utime(path, ns=(at * 1_000, at * 1_000))
    for path in there.iterdir():
        if time.time() - _modified_at(path) > _DAY:
            path.unlink(missing_ok=True)


def _flush_time(name: str) -> int:
    try:
        return (folder() / name).stat().st_mtime_ns // 1_000
    except OSError:
        return 0


def _modified_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:  # another flush was quicker
        return time.time()
