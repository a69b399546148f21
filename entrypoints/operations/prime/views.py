"""Text from `prime`: for an agent, or for the hook that asked."""

from typing import Any


def prime(answer: dict[str, Any]) -> str:
    """The answer to a hook as one line of JSON, else the text; nothing where there is none."""
    if answer["hook"] is None:
        return str(answer["text"])
    import json  # noqa: PLC0415

    return json.dumps(answer["hook"], ensure_ascii=False) if answer["hook"] else ""
