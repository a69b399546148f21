"""Text for people from `share`."""

from typing import Any

from herdbook.entrypoints.cli.text import plain, size


def share(answer: dict[str, Any]) -> str:
    """Where the page was written."""
    return plain(f"wrote {answer['file']} ({size(answer['bytes'])}), as of #{answer['seq']}")
