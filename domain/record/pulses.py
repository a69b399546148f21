"""Pulses: what agents do right now, as their hooks tell it, before any of it is in the record."""

from enum import StrEnum
from typing import Final, NamedTuple

from herdbook.domain.record.events import HookEvent


class PulseKind(StrEnum):
    """What an agent does; `WAITING` agents have ended their turn and wait for a person."""

    STARTED = "started"
    PROMPTED = "prompted"
    TOOL_STARTED = "tool_started"
    TOOL_ENDED = "tool_ended"
    TOOL_FAILED = "tool_failed"
    COMMAND = "command"
    COMMITTED = "committed"
    WAITING = "waiting"
    ENDED = "ended"


_KINDS: Final = {
    "SessionStart": PulseKind.STARTED,
    "session.created": PulseKind.STARTED,
    "UserPromptSubmit": PulseKind.PROMPTED,
    "PreToolUse": PulseKind.TOOL_STARTED,
    "PostToolUse": PulseKind.TOOL_ENDED,
    "tool.execute.after": PulseKind.TOOL_ENDED,
    "PostToolUseFailure": PulseKind.TOOL_FAILED,
    "command.executed": PulseKind.COMMAND,
    "post-commit": PulseKind.COMMITTED,
    "Stop": PulseKind.WAITING,
    "Notification": PulseKind.WAITING,
    "session.idle": PulseKind.WAITING,
    "SessionEnd": PulseKind.ENDED,
    "session.deleted": PulseKind.ENDED,
}


class Pulse(NamedTuple):
    """Something an agent did; `at` counts microseconds, `id` is that of the hook's event.

    It has the names of things only: nothing of what a tool was given or has answered.
    """

    id: str
    at: int
    kind: PulseKind
    agent: str | None
    session_id: str | None
    provider: str | None
    model: str | None
    cwd: str
    tool: str | None


def pulse_of(event: HookEvent, tool: str | None = None) -> Pulse | None:
    """The pulse of an event; None for one that tells nothing about what an agent does now."""
    kind = _KINDS.get(event.name.rpartition(":")[2])
    if kind is None:
        return None
    return Pulse(
        id=event.id,
        at=event.at,
        kind=kind,
        agent=event.agent,
        session_id=event.session_id or event.environment_session,
        provider=event.setup.provider,
        model=event.setup.model,
        cwd=event.cwd,
        tool=tool,
    )
