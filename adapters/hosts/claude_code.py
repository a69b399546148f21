"""Claude Code: its hook events and payloads."""

from collections.abc import Mapping
from typing import Final

from herdbook.adapters.hosts.payload import Payload, as_mapping, as_name, mode_of, model_name
from herdbook.domain.record.events import Meaning

MEANINGS: Final[Mapping[str, Meaning]] = {
    "PostToolUse": Meaning.TOOL,
    "SessionStart": Meaning.UNCOUNTED,
    "UserPromptSubmit": Meaning.UNCOUNTED,
    "PreToolUse": Meaning.UNCOUNTED,
    "PostToolUseFailure": Meaning.UNCOUNTED,
    "SubagentStop": Meaning.UNCOUNTED,
    "Stop": Meaning.UNCOUNTED,
    "SessionEnd": Meaning.UNCOUNTED,
}


def parse(raw: object) -> Payload:
    """What the payload of a Claude Code hook says."""
    fields = as_mapping(raw)
    return Payload(
        session_id=as_name(fields.get("session_id")),
        provider="claude" if is_transcript_below(fields, ".claude") else None,
        model=model_name(fields.get("model")),
        mode=mode_of(fields.get("permission_mode")),
    )


def is_transcript_below(fields: Mapping[str, object], folder: str) -> bool:
    """Whether the session's transcript is below a folder of this name.

    Claude Code and Codex send the same events; the folder of the transcript tells them apart.
    """
    path = fields.get("transcript_path")
    return isinstance(path, str) and folder in path.split("/")
