"""Text for people and hosts from `plugin path`."""

from typing import Any


def plugin_path(answer: dict[str, Any]) -> str:
    """The path alone, which hosts read."""
    return str(answer["path"])
