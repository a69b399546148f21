"""Help texts of the command line."""

from collections.abc import Sequence
from difflib import get_close_matches

from herdbook.entrypoints.operations.registry import OPERATIONS

NOT_SUGGESTED = ("rm", "remove", "prune", "revert", "reinstate")
"""Agents follow hints to the letter, so none of them leads to what cannot be taken back."""


def version() -> str:
    """The program and its version."""
    from importlib.metadata import version  # noqa: PLC0415 - 50 ms

    return f"herdbook {version('herdbook')}"


def is_group(word: str) -> bool:
    """Whether a word begins several commands."""
    return any(each.words[0] == word for each in OPERATIONS)


def overview(group: Sequence[str] = ()) -> str:
    """Every command in one line each, or those of a group."""
    shown = [each for each in OPERATIONS if not group or each.words[0] == group[0]]
    width = max(len(" ".join(each.words)) for each in shown or OPERATIONS)
    lines = [f"  {' '.join(each.words):{width}}  {each.help}" for each in shown or OPERATIONS]
    return "\n".join(
        [
            "usage: herdbook COMMAND [options]",
            "",
            *lines,
            "",
            "`herdbook COMMAND --help` shows the options and an example.",
        ]
    )


def describe_unknown(words: Sequence[str]) -> str:
    """The error for an unknown command, with the closest known one that removes nothing."""
    names = (" ".join(each.words) for each in OPERATIONS if each.words[-1] not in NOT_SUGGESTED)
    commands = list(names)
    asked = " ".join(word for word in words[:2] if not word.startswith("-"))
    near = get_close_matches(asked, commands, n=1) or get_close_matches(words[0], commands, n=1)
    hint = f"did you mean `herdbook {near[0]}`?" if near else "`herdbook --help` lists them all"
    return f"there is no such command; {hint}"
