"""`hooks install` and `hooks uninstall` for people."""

from typing import Any

from herdbook.entrypoints.cli.text import plain


def changes(answer: dict[str, Any]) -> str:
    """The difference, whether it was made, and what to know about it."""
    unseen = [] if answer["asked"] else answer["changes"]
    lines = [plain(line) for each in unseen for line in each["difference"].split("\n")]
    if not answer["changes"]:
        lines.append("nothing to change")
    elif not answer["done"]:
        lines.append("nothing was changed")
    else:
        lines += [f"changed {plain(each['path'])}" for each in answer["changes"]]
    return "\n".join([*lines, *(f"note: {plain(each)}" for each in answer["notes"])])


def no_output(answer: dict[str, Any]) -> str:
    """A hook says nothing."""
    del answer
    return ""
