"""Text for people from `mcp` and `serve`."""

from typing import Any

from herdbook.entrypoints.operations.hooks.views import changes


def mcp(answer: dict[str, Any]) -> str:
    """The changes of an installation; nothing after serving."""
    return changes(answer) if answer else ""


_SERVED = {
    "started": "Herdbook serves {folders} at {url}\nopen {link} (once; Ctrl-C ends the server)",
    "demo": "a herd of a demo works in {folders}, which is removed at the end\n"
    "open {link} (once; Ctrl-C ends it)",
    "running": "Herdbook serves {folders} at {url} already (process {pid})\nopen {link} (once)",
    "stopped": "the server at {url} (process {pid}) has ended",
    "absent": "no server runs",
}


def serve(answer: dict[str, Any]) -> str:
    """Where the server is, and how to get in."""
    return _SERVED[answer["state"]].format_map({**answer, "folders": ", ".join(answer["folders"])})
