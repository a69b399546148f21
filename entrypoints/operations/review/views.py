"""Text for people from `review queue`, `review diff` and `review submit`."""

from collections.abc import Iterator
from typing import Any

from herdbook.entrypoints.cli.terminal import table
from herdbook.entrypoints.cli.text import local_time, plain, short_id, shorten

Data = dict[str, Any]
WIDEST = 50
MARKS = {"added": "+", "removed": "-", "context": " "}


def queue(answer: list[Data]) -> str:
    """A line for each review: what, since when, whose work, and its comments."""
    rows = [
        (
            "waits" if each["is_waiting"] else "",
            each["kind"],
            short_id(each["id"]),
            shorten(each["name"], WIDEST),
            each["status"],
            local_time(each["since"]),
            ", ".join(each["agents"]),
            f"{each['open_threads']} of {each['threads']} open" if each["threads"] else "",
        )
        for each in answer
    ]
    heads = ("", "KIND", "ID", "NAME", "STATUS", "SINCE", "AGENTS", "COMMENTS")
    return table(heads, rows, "there are none")


def diff(answer: Data) -> str:
    """What is compared, the files with their numbers of lines, then the lines."""
    subject, source = answer["subject"], answer["source"]
    lines = [f"{subject['kind']} {plain(subject['name'])} ({subject['status']})"]
    if source is not None and source["base"] is not None:
        compared = f"{source['base'][:10]} ({plain(source['base_name'])})..{source['head'][:10]}"
        lines.append(f"{plain(source['name'])}: {compared}")
    if len(answer["sources"]) > 1:
        lines.append(f"branches with work on it: {', '.join(map(plain, answer['sources']))}")
    if source is not None and source["uncommitted"]:
        lines.append(f"not committed in its worktree: {_files(source['uncommitted'])}")
    if answer["problem"] is not None:
        return "\n".join([*lines, plain(answer["problem"])])
    total = answer["total"]
    lines += ["", *(_stat(each) for each in answer["files"])]
    lines.append(f"{_files(total['files'])}, +{total['added']} -{total['removed']}")
    for each in answer["files"]:
        if each["hunks"]:
            lines += ["", f"=== {_name(each)}", *_hunk_lines(each["hunks"])]
    for thread in answer["threads"]:
        first = thread["first"]
        place = f"{plain(first['file_path'])}:{thread['line']} ({thread['state']})"
        said = [f"  {plain(each['author'])}: {plain(each['body'])}" for each in _comments(thread)]
        lines += ["", f"{place}  {'resolved' if first['resolved'] else 'open'}", *said]
    return "\n".join([*lines, *map(plain, answer["cut"])])


def _files(count: int) -> str:
    return f"{count:,} file{'' if count == 1 else 's'}"


def _comments(thread: Data) -> list[Data]:
    return [thread["first"], *thread["replies"]]


def _name(file: Data) -> str:
    old = file["old_path"]
    return plain(file["path"]) if old is None else f"{plain(old)} => {plain(file['path'])}"


def _stat(file: Data) -> str:
    if file["added"] is None:
        sizes = f"{file['old_size'] or 0} -> {file['new_size'] or 0} bytes"
        numbers = f"{file['form']}, {sizes}" if file["form"] != "submodule" else file["form"]
    else:
        numbers = f"+{file['added']} -{file['removed']}"
    notes = [] if not file["threads"] else [f"{file['open_threads']} of {file['threads']} open"]
    if file["old_mode"] != file["new_mode"] and file["change"] in ("modified", "renamed"):
        notes.append(f"mode {file['old_mode']} -> {file['new_mode']}")
    more = f"  ({', '.join(notes)})" if notes else ""
    return f"{file['change']:9} {numbers:>12}  {_name(file)}{more}"


def _hunk_lines(hunks: list[Data]) -> Iterator[str]:
    for each in hunks:
        old, new = (f"{each[f'{side}_start']},{each[f'{side}_count']}" for side in ("old", "new"))
        yield f"@@ -{old} +{new} @@ {plain(each['heading'])}".rstrip()
        for line in each["lines"]:
            more = f" … and {line['more']} more characters" if line["more"] else ""
            yield f"{MARKS[line['type']]}{plain(line['text'])}{more}"


def submission(answer: Data) -> str:
    """How many comments were added, and who was told."""
    count = len(answer["comments"])
    told = f"; {plain(answer['to'])} was told" if answer["to"] else "; no agent was told"
    return f"added {count} comment{'s' if count > 1 else ''}{told}"
