"""Reviews as a page: what waits for one, or one of them with its diff and its comments."""

from collections.abc import Sequence

from herdbook.entrypoints.cli.text import plural, short_id
from herdbook.entrypoints.operations.share.html import Html, element, join
from herdbook.entrypoints.operations.share.parts import (
    Content,
    Data,
    Shared,
    list_of,
    section,
    table,
)

SIGNS = {"added": "+", "removed": "-"}
TAGS = {"added": "ins", "removed": "del"}
STATES = {"moved": "its lines have moved", "outdated": "its lines were changed or removed"}


def review(shown: Shared, key: str | None) -> Content:
    """What waits for a review and the phases under way; with a key, one with diff and comments."""
    return _queue(shown) if key is None else _one(shown, key)


def _queue(shown: Shared) -> Content:
    entries = shown.ask("review.queue")
    parts = [
        section(
            f"{title} ({sum(each['is_waiting'] is waits for each in entries)})",
            _entries(shown, title, [each for each in entries if each["is_waiting"] is waits]),
        )
        for title, waits in (("To review", True), ("Under way", False))
    ]
    return "Review", join(parts)


def _entries(shown: Shared, title: str, entries: Sequence[Data]) -> Html:
    rows = [
        (
            short_id(each["id"]),
            each["name"],
            each["kind"],
            each["status"].replace("_", " "),
            ", ".join(each["agents"]) or "nobody known",
            f"{each['open_threads']} of {each['threads']} open",
            shown.time(each["since"]),
        )
        for each in entries
    ]
    header = ("id", "name", "kind", "status", "agents", "comments", "since")
    return table(title, header, rows, "Nothing.")


def _one(shown: Shared, key: str) -> Content:
    found = shown.ask("review.diff", subject=key)
    subject, source, total = found["subject"], found["source"], found["total"]
    problem = found["problem"] and element("p", shown.without_paths(found["problem"]))
    cut = [element("p", shown.without_paths(each), class_="mute") for each in found["cut"]]
    facts = [
        ("status", subject["status"].replace("_", " ")),
        ("initiative", subject["initiative"]),
        ("agents", ", ".join(subject["agents"]) or "nobody known"),
        ("branch", source and f"{source['name']}, compared with {source['base_name']}"),
        (
            "differs",
            f"{plural(total['files'], 'file')}, +{total['added']:,} -{total['removed']:,}",
        ),
    ]
    pairs = [(element("dt", name), element("dd", value)) for name, value in facts if value]
    files = [_file(shown, each, _threads(shown, found, each)) for each in found["files"]]
    elsewhere = [_thread(shown, each, each["first"]["file_path"]) for each in found["elsewhere"]]
    return f"Review: {subject['name']}", join(
        [
            section(subject["kind"], element("dl", pairs, class_="details"), problem or None, cut),
            files,
            section("Comments on files that do not differ", list_of(elsewhere, ""))
            if elsewhere
            else None,
        ]
    )


def _threads(shown: Shared, found: Data, file: Data) -> Sequence[Data]:
    """The comments on a file, which are told of one file at a time."""
    if not file["threads"]:
        return ()
    asked = {"subject": found["subject"]["id"], "source": found["source"]["name"]}
    told: Sequence[Data] = shown.ask("review.diff", file=file["path"], **asked)["threads"]
    return told


def _file(shown: Shared, file: Data, threads: Sequence[Data]) -> Html:
    """A file with its changed lines, then the comments on them."""
    said = [_thread(shown, each, None) for each in threads]
    was = f", was {file['old_path']}" if file["old_path"] not in (None, "", file["path"]) else ""
    counts = "" if file["added"] is None else f", +{file['added']:,} -{file['removed']:,}"
    form = "" if file["form"] == "text" else f", {file['form']}"
    hunks = file["hunks"]
    return section(
        f"{file['path']} ({file['change']}{was}{form}{counts})",
        element("pre", [_hunk(each) for each in hunks], class_="lines") if hunks else None,
        None
        if file["is_complete"]
        else element("p", "Not all of its lines are here.", class_="mute"),
        element("ul", said) if said else None,
    )


def _hunk(hunk: Data) -> Html:
    where = f"@@ -{hunk['old_start']},{hunk['old_count']} +{hunk['new_start']},{hunk['new_count']}"
    return join(
        [
            element("span", f"{where} @@ {hunk['heading']}".rstrip(), class_="mute"),
            "\n",
            [_line(each) for each in hunk["lines"]],
        ]
    )


def _line(line: Data) -> Html:
    number = line["old"] if line["new"] is None else line["new"]
    more = f" (and {plural(line['more'], 'character')} more)" if line["more"] else ""
    kind = line["type"]
    text = f"{number or '':>5} {SIGNS.get(kind, ' ')} {line['text']}{more}\n"
    return element(TAGS.get(kind, "span"), text)


def _thread(shown: Shared, thread: Data, file: str | None) -> Html:
    first, last = thread["line"], thread["last_line"]
    lines = f"line {first}" if last <= first else f"lines {first} to {last}"
    side = "before the change" if thread["side"] == "old" else None
    resolved = "resolved" if thread["first"]["resolved"] else "open"
    facts = [file, lines, side, STATES.get(thread["state"]), resolved]
    return element(
        "li",
        element("p", ", ".join(filter(None, facts)), class_="mute"),
        [_comment(shown, each) for each in (thread["first"], *thread["replies"])],
        class_="entry",
    )


def _comment(shown: Shared, comment: Data) -> Html:
    return join(
        [
            element(
                "p", element("strong", comment["author"]), " ", shown.time(comment["created_at"])
            ),
            element("p", comment["body"], class_="prose"),
        ]
    )
