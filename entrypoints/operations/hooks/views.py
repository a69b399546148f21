"""Text for people from `hooks install` and `hooks uninstall`."""

from typing import Any

from herdbook.entrypoints.cli.text import plain, plain_lines


def changes(answer: dict[str, Any]) -> str:
    """The difference, unless it was shown before, whether it was made, and notes."""
    unseen = [] if answer["asked"] else answer["changes"]
    lines = [plain_lines(each["difference"]) for each in unseen]
    if not answer["changes"]:
        lines.append("nothing to change")
    elif not answer["done"]:
        lines.append("nothing was changed")
    else:
        lines += [f"changed {plain(each['path'])}" for each in answer["changes"]]
    return "\n".join([*lines, *(f"note: {plain(each)}" for each in answer["notes"])])


def no_output(answer: dict[str, Any]) -> str:
    """Nothing: a hook prints no text."""
    del answer
    return ""
