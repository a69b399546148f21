"""Text for people from `doctor`."""

from collections import Counter
from typing import Any

from herdbook.entrypoints.cli.text import plain, plural


def doctor(answer: dict[str, Any]) -> str:
    """A line for each result, what to do below it, and a sum at the end."""
    lines = []
    before = ""
    for each in answer["checks"]:
        name = "" if each["check"] == before else each["check"]
        before = each["check"]
        lines.append(f"{name:<10} {each['health']:<8} {plain(each['says'])}")
        if each["advice"]:
            lines.append(f"{'':<19} -> {plain(each['advice'])}")
    counts = Counter(each["health"] for each in answer["checks"])
    told = [plural(counts[each], each) for each in ("problem", "warning") if counts[each]]
    return "\n".join([*lines, ", ".join(told) or "OK"])
