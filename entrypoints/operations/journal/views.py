"""Text for people from the journal."""

import json
from itertools import groupby
from typing import Any

from herdbook.entrypoints.cli.terminal import table
from herdbook.entrypoints.cli.text import local_time, plain, plural, short_id, shorten

LEFT_OUT = ("id", "created_at", "updated_at", "version", "worktree_id", "claim_stamp")
"""The fields of a change that are left out."""
SIGNS = {"added": "+", "removed": "-", "changed": "~"}
LONGEST_VALUE = 60
"""The maximum number of terminal columns of a value."""


def entries(answer: list[dict[str, Any]]) -> str:
    """Entries of the journal, a line each."""
    return "\n".join(map(entry, answer))


def entry(answer: dict[str, Any]) -> str:
    """One entry of the journal: when, who, what, and the fields that changed."""
    who = answer["agent"] or answer["person"] or "somebody"
    changed = {
        name: value
        for name, value in (answer["after"] or {}).items()
        if name not in LEFT_OUT and answer["op"] != "remove"
    }
    fields = "" if not changed else "  " + json.dumps(changed, ensure_ascii=False)
    note = f"  [{answer['note']}]" if answer["note"] else ""
    line = (
        f"#{answer['seq']} {answer['at'][:19]}Z {who}: {answer['op']} "
        f"{answer['entity']} {answer['key']}{fields}{note}"
    )
    return plain(line)


def history(answer: dict[str, Any]) -> str:
    """A paragraph for each transaction."""
    return "\n\n".join(map(_step, answer["steps"])) or "nothing has happened yet"


def _step(step: dict[str, Any]) -> str:
    note = f" [{step['note']}]" if step["note"] else ""
    all_ = step["seq"] - step["before"]
    part = "" if len(step["entries"]) == all_ else f", {len(step['entries'])} of {all_} changes"
    head = plain(f"{local_time(step['time'])} {step['who'] or 'somebody'}{note}{part}")
    return "\n".join([head, *(plain(f"  #{e['seq']} {e['text']}") for e in step["entries"])])


def moments(answer: dict[str, Any]) -> str:
    """A line for each transaction, and where the journal begins and ends."""
    lines = [
        f"#{each['seq']} {local_time(each['time'])} {each['who'] or 'somebody'}, "
        + plural(each["entries"], "entry").replace("entrys", "entries")
        for each in answer["moments"]
    ]
    first, last = answer["first"]["seq"], answer["last"]["seq"]
    return plain("\n".join([*lines, f"--at takes #{first} to #{last}"]))


def prune(answer: dict[str, Any]) -> str:
    """What was folded, where the journal begins now, and the digest of all other rows."""
    count = plural(answer["folded"], "entry").replace("entrys", "entries")
    ends = f"and ends at #{answer['last']}"
    if answer["first"] > answer["last"]:
        ends = "with the next entry"
    left = f"{answer['space']} begins at #{answer['first']} {ends}"
    if answer["preview"]:
        return f"{count} would be folded; then the journal of {left}. Nothing was written"
    same = f"all other rows are unchanged: digest {answer['digest']} before and after"
    return f"{count} folded; the journal of {left}\n{same}"


def cursors(answer: list[dict[str, Any]]) -> str:
    """A line for each cursor."""
    rows = [
        (
            plain(each["cursor"]),
            f"#{each['seq']}",
            str(each["behind"]),
            f"{each['updated_at'][:16]}Z".replace("T", " "),
            _expiry(each),
            plain(each["holder"]),
        )
        for each in answer
    ]
    return table(
        ("CURSOR", "READ UP TO", "BEHIND", "MOVED", "EXPIRES", "HOLDER"),
        rows,
        "nobody holds this journal",
    )


def _expiry(cursor: dict[str, Any]) -> str:
    if cursor["expires_at"] is None:
        return "never"
    return "over" if not cursor["live"] else f"{cursor['expires_at'][:16]}Z".replace("T", " ")


def diff(answer: dict[str, Any]) -> str:
    """What changed, kind by kind, a line for each row and for each of its changed fields."""
    since, until = (
        f"#{each['seq']} ({local_time(each['time'])})"
        for each in (answer["since"], answer["until"])
    )
    counts = ", ".join(f"{answer[word]} {word}" for word in SIGNS)
    lines = [f"from {since} to {until}: {counts}"]
    for entity, rows in groupby(answer["rows"], key=lambda each: each["entity"]):
        lines += ["", entity.replace("_", " ")]
        for row in rows:
            name = shorten(plain(row["name"] or ""), LONGEST_VALUE)
            lines.append(f"  {SIGNS[row['change']]} {short_id(row['id'])}  {name}".rstrip())
            if row["change"] == "changed":
                lines += [_field(each) for each in row["fields"] if each["field"] not in LEFT_OUT]
    if answer["more"]:
        lines += ["", f"and {answer['more']:,} more rows; --limit sets how many are shown"]
    return "\n".join(lines)


def _field(field: dict[str, Any]) -> str:
    name = field["field"].removesuffix("_id").replace("_", " ")
    before, after = (_value(field[side], field[f"{side}_name"]) for side in ("before", "after"))
    return f"      {name}: {before} → {after}"


def _value(value: Any, name: str | None) -> str:
    if value is None:
        return "(empty)"
    text = name or (value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
    return shorten(plain(text), LONGEST_VALUE)


def undo(answer: dict[str, Any]) -> str:
    """What was taken back, in one line for each row."""
    lines = [f"took back #{answer['seq']} of {local_time(answer['at'])}"]
    for word in ("removed", "changed", "restored"):
        lines += [f"  {word} {plain(each)}" for each in answer[word]]
    return "\n".join(lines)
