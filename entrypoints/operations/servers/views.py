"""Text for people from `mcp`."""

from typing import Any

from herdbook.entrypoints.operations.hooks.views import changes


def mcp(answer: dict[str, Any]) -> str:
    """The changes of an installation; nothing after serving."""
    return changes(answer) if answer else ""
