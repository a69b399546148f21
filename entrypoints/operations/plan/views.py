"""Text for people from `claim`."""

from typing import Any

from herdbook.entrypoints.cli.text import plain


def claim(answer: dict[str, Any]) -> str:
    """The claimed task, its fence and lease, and the summaries it builds on."""
    task = answer["task"]
    lines = [
        f"{task['id']}  {plain(task['name'])}",
        f"fence {answer['fence']}, until {answer['lease_until']}",
    ]
    if task["description"]:
        lines += ["", plain(task["description"])]
    for key, summary in answer["summaries"].items():
        lines.append(f"built on {key}: {plain(summary or 'no summary')}")
    return "\n".join(lines)
