"""What is said as a page: the list of it, or one thread, question or chat."""

from herdbook.entrypoints.cli.text import plural, short_id
from herdbook.entrypoints.operations.share.html import Html, element
from herdbook.entrypoints.operations.share.parts import (
    Content,
    Data,
    Shared,
    list_of,
    section,
    table,
)

MOST = 1_000
"""How many of the list are shown."""
NONE = "Nobody has said anything yet."


def talk(shown: Shared, key: str | None) -> Content:
    """All that is said, what needs an answer first; with a key, the lines of one."""
    return _list(shown) if key is None else _text(shown, key)


def _list(shown: Shared) -> Content:
    found = shown.ask("talk.list", limit=MOST)
    rows = [
        (
            short_id(each["id"]),
            each["kind"],
            ", ".join(each["agents"]) or "nobody",
            _state(each),
            f"{each['last'].get('by') or 'you'}: {each['last']['text']}" if each["lines"] else "-",
            shown.time(each["last"]["at"]),
        )
        for each in found["entries"]
    ]
    title = f"{len(rows):,} of {found['total']:,}, {found['unanswered']:,} to answer"
    header = ("id", "kind", "with", "state", "last", "time")
    return "Talk", section(title, table("Talk", header, rows, NONE))


def _state(entry: Data) -> str:
    if entry["needs_answer"]:
        return "needs your answer"
    if entry["unread"]:
        return f"{entry['unread']} unread"
    if entry["open"]:
        return "open"
    return "closed" if entry["kind"] == "chat" else "answered"


def _text(shown: Shared, key: str) -> Content:
    found = shown.ask("talk.show", id=key)
    entry = found["entry"]
    left = entry["lines"] - len(found["shown"])
    names = ", ".join(entry["agents"])
    kind = entry["kind"].capitalize()
    return f"{kind} with {names}" if names else kind, section(
        f"{plural(entry['lines'], 'line')}, {_state(entry)}",
        element("p", f"{plural(left, 'earlier line')} not shown", class_="mute") if left else None,
        list_of([_line(shown, each) for each in found["shown"]], NONE),
    )


def _line(shown: Shared, line: Data) -> Html:
    to = line.get("to")
    return element(
        "li",
        element(
            "p",
            element("strong", line.get("by") or "you"),
            f" to {to}, " if to else " ",
            shown.time(line["at"]),
        ),
        element("p", line["text"], class_="prose"),
        class_="entry",
    )
