"""Text for people from `claim`, `task show`, `search` and the reviews."""

from collections.abc import Iterator
from typing import Any

from herdbook.entrypoints.cli.terminal import table
from herdbook.entrypoints.cli.text import local_time, plain, plain_lines, short_id, shorten

Data = dict[str, Any]
WIDEST = 50


def claim(answer: Data) -> str:
    """The claimed task, its fence and lease, and what it builds on; or why there is none."""
    task = answer["task"]
    if task is None:
        return plain(answer["reason"])
    lines = [
        f"claimed {short_id(task['id'])}  {plain(task['name'])}",
        f"fence {answer['fence']}, until {local_time(answer['lease_until'])}",
    ]
    for name in ("description", "acceptance"):
        if task[name]:
            lines += ["", plain_lines(task[name])]
    for key, summary in answer["summaries"].items():
        lines.append(f"built on {short_id(key)}: {plain(summary or 'no summary')}")
    return "\n".join(lines)


def task(answer: Data) -> str:
    """A task as a person reads it: what, where, who, what it waits for, and what happened."""
    place = [answer["initiative"], answer["phase"], answer["parent"]]
    words = [answer["status"], f"{answer['priority']} priority", answer["category"]]
    lines = [
        f"{short_id(answer['id'])}  {plain(answer['name'])}",
        *_line("", ", ".join(words)),
        *_line("in", " > ".join(plain(each) for each in place if each)),
        *_line("labels", ", ".join(answer["labels"] or ())),
        *_line("holder", _holder(answer)),
        *_line("attempts", str(answer["retry_count"] or "")),
    ]
    for title, name in (
        ("", "description"),
        ("accepted when", "acceptance"),
        ("result", "summary"),
    ):
        if answer[name]:
            lines += ["", *([f"{title}:"] if title else []), plain_lines(answer[name])]
    for title, name in (
        ("waits for", "waits_for"),
        ("needed by", "dependents"),
        ("parts", "children"),
    ):
        if answer[name]:
            lines += ["", f"{title}:", *map(_related_row, answer[name])]
    total = answer["changes"]
    cut = f" (the last {len(answer['history'])} of {total:,})"
    lines += ["", f"history{cut if total > len(answer['history']) else ''}:"]
    if answer["history_from"] is not None:
        begins = f"the journal begins at #{answer['history_from']}"
        lines.append(f"  earlier changes were folded: {begins}")
    lines += map(_event, answer["history"])
    return "\n".join([*lines, "", f"id {answer['id']}"])


def _line(title: str, text: str) -> Iterator[str]:
    if text:
        yield f"        {title + ' ' if title else ''}{text}"


def _holder(answer: Data) -> str:
    if answer["holder"] is None and answer["lease_until"] is None:
        return ""
    until = answer["lease_until"]
    name = plain(answer["holder"] or "an agent that is gone")
    return f"{name}{f', until {local_time(until)}' if until else ''}"


def _related_row(row: Data) -> str:
    kind = "phase " if row["kind"] == "phase" else ""
    return f"  {short_id(row['id'])}  {row['status']:14}  {kind}{plain(row['name'])}"


def _event(event: Data) -> str:
    who = plain(event["who"] or "somebody")
    return f"  {local_time(event['at'])}  {who}: {plain(event['what'])}"


def search(answer: Data) -> str:
    """A line for each match, and how many there are."""
    matches, read = answer["matches"], f"{answer['searched']:,} rows were read"
    if not matches:
        lines = [f"nothing was found; {read}"]
    else:
        rows = [
            (
                each["kind"],
                short_id(each["id"]),
                each["status"] or "",
                shorten(each["name"], WIDEST),
                "" if each["excerpt"] == each["name"] else each["excerpt"],
            )
            for each in matches
        ]
        lines = [table(("KIND", "ID", "STATUS", "NAME", "FOUND"), rows)]
        if answer["total"] > len(matches):
            shown = f"{len(matches):,} of {answer['total']:,}"
            lines.append(f"{shown}; --limit sets how many are shown")
    if not answer["complete"]:
        lines.append(f"only {read}: there may be more")
    return "\n".join(lines)


def threads(answer: list[Data]) -> str:
    """Each thread with its place, its comments and whether it is resolved."""
    if not answer:
        return "there are none"
    return "\n\n".join(
        "\n".join(
            [
                _place(each["first"]),
                *_code(each["first"]),
                *map(_comment, [each["first"], *each["replies"]]),
            ]
        )
        for each in answer
    )


def comments(answer: list[Data]) -> str:
    """A line for each comment: where, who, whether it is resolved, and what."""
    rows = [
        (
            short_id(each["id"]),
            shorten(f"{each['file_path']}:{each['line_number']}", WIDEST),
            each["author"],
            "resolved" if each["resolved"] else "",
            shorten(each["body"].partition("\n")[0], WIDEST),
        )
        for each in answer
    ]
    return table(("ID", "PLACE", "AUTHOR", "", "BODY"), rows, "there are none")


def _place(comment: Data) -> str:
    state = "resolved" if comment["resolved"] else "open"
    last = f"-{comment['last_line']}" if comment["last_line"] else ""
    place = f"{plain(comment['file_path'])}:{comment['line_number']}{last}"
    return f"{place}  ({comment['line_type']}, {state})  {short_id(comment['id'])}"


def _code(comment: Data) -> list[str]:
    """The lines that a comment is about, as they were."""
    return [f"  | {plain(each)}" for each in (comment["line_text"] or "").split("\n") if each]


def _comment(comment: Data) -> str:
    body = plain_lines(comment["body"]).replace("\n", "\n    ")
    return f"  {plain(comment['author'])}: {body}"
