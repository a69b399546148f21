"""OpenCode: the events of its plugins and their payloads."""

from collections.abc import Mapping
from typing import Final

from herdbook.adapters.hosts.payload import Payload, as_mapping, as_name, mode_of, model_name
from herdbook.domain.record.events import Meaning

MEANINGS: Final[Mapping[str, Meaning]] = {
    "tool.execute.after": Meaning.TOOL,
    "command.executed": Meaning.COMMAND,
    "session.created": Meaning.UNCOUNTED,
    "session.idle": Meaning.UNCOUNTED,
    "session.deleted": Meaning.UNCOUNTED,
    "message.part.updated": Meaning.UNCOUNTED,
}

_SESSION_KEYS: Final = ("session_id", "sessionID", "sessionId")


def parse(raw: object) -> Payload:
    """What the payload of an OpenCode event says.

    A command that failed is sent as the same event as any other, with its exit code in it.
    """
    fields = as_mapping(raw)
    code = fields.get("exit")
    return Payload(
        session_id=_session_id(fields),
        model=model_name(fields.get("model")),
        mode=mode_of(fields.get("agent")),
        failed=isinstance(code, int) and code != 0,
    )


def _session_id(fields: Mapping[str, object]) -> str | None:
    for holder in (fields, as_mapping(fields.get("properties")), as_mapping(fields.get("input"))):
        for key in _SESSION_KEYS:
            if found := as_name(holder.get(key)):
                return found
    return None
