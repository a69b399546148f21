"""The output of `completion`, for a shell."""

from typing import Any


def completion(answer: dict[str, Any]) -> str:
    """The script and nothing else."""
    return str(answer["script"]).removesuffix("\n")
