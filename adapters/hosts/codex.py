"""Codex: its hooks send the events and payloads of Claude Code's."""

from herdbook.adapters.hosts import claude_code
from herdbook.adapters.hosts.payload import Payload, as_mapping


def parse(raw: object) -> Payload:
    """What the payload of a Codex hook says."""
    is_codex = claude_code.is_transcript_below(as_mapping(raw), ".codex")
    return claude_code.parse(raw)._replace(provider="codex" if is_codex else None)
