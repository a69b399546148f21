"""`mcp` for people."""

from typing import Any

from herdbook.entrypoints.operations.hooks.views import changes


def mcp(answer: dict[str, Any]) -> str:
    """What was installed; the server itself has said all it had to say."""
    return changes(answer) if answer else ""
