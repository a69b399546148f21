"""Text for people from `talk list` and `talk show`."""

from typing import Any

from herdbook.entrypoints.cli.terminal import table
from herdbook.entrypoints.cli.text import local_time, plain, plain_lines, short_id, shorten

WIDEST = 50
"""How many columns of a text are shown in the list."""
PERSON = "you"

Data = dict[str, Any]


def entries(answer: Data) -> str:
    """A line for each of them: what it needs, who talks, when and what was said last."""
    if not answer["entries"]:
        return (
            "nobody has said anything; `herdbook message broadcast TEXT` tells all agents something"
        )
    rows = [
        (
            short_id(each["id"]),
            each["kind"],
            _need(each),
            shorten(plain(", ".join(each["agents"]) or "nobody"), WIDEST // 2),
            local_time(each["last"]["at"]),
            shorten(plain(each["last"]["text"].partition("\n")[0]), WIDEST),
        )
        for each in answer["entries"]
    ]
    shown, total = len(rows), answer["total"]
    cut = f"\n{shown:,} of {total:,}; --limit sets how many are shown" if shown < total else ""
    return table(("ID", "KIND", "", "WITH", "LAST", "TEXT"), rows) + cut


def _need(entry: Data) -> str:
    if entry["needs_answer"]:
        return "answer needed"
    return f"{entry['unread']} unread" if entry["unread"] else ""


def lines(answer: Data) -> str:
    """What was said, line by line, and the command that answers."""
    entry = answer["entry"]
    found = [f"{entry['kind']} {entry['id']}", ""]
    for line in answer["shown"]:
        to = line.get("to")
        whom = f" to {plain(to)}" if to else ""
        found += [f"{plain(line.get('by') or PERSON)}{whom}, {local_time(line['at'])}"]
        found += [f"  {each}" for each in plain_lines(line["text"]).split("\n")]
    left = entry["lines"] - len(answer["shown"])
    if left > 0:
        found.insert(2, f"{left:,} earlier lines are not shown")
    return "\n".join([*found, "", _command(answer.get("reply"))]).rstrip()


def _command(reply: Data | None) -> str:
    if reply is None:
        return ""
    words = " ".join(str(each) for each in reply["params"].values())
    return f"answer: herdbook {reply['method'].replace('.', ' ')} {words} TEXT"
