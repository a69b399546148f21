"""Text for people from `status`: one table over all worktrees."""

from typing import Any

from herdbook.entrypoints.cli.terminal import table
from herdbook.entrypoints.cli.text import duration, plain

HEADER = ("WORKTREE", "AGENT", "STATUS", "TASK", "SINCE", "LEASE LEFT", "WAITS FOR", "LAST CHANGE")


def status(answer: dict[str, Any]) -> str:
    """A table for each space, and the settings that override the user's own."""
    notes = [f"note: {plain(each)}" for each in answer["notes"]]
    return "\n\n".join([*map(_space, answer["spaces"]), *notes])


def _space(space: dict[str, Any]) -> str:
    tasks, last = space["tasks"], space["last_entry"]
    counts = ", ".join(f"{tasks[state]} {state}" for state in ("ready", "held", "waiting"))
    lines = [f"{space['space']}: tasks {counts}"]
    if space["rows"]:
        lines += ["", table(HEADER, [_row(row) for row in space["rows"]])]
    else:
        lines.append("nobody is at work here")
    if last is not None:
        who = last["agent"] or last["person"] or "somebody"
        place = _in_worktree(space, last["worktree_id"])
        lines += ["", f"last change: #{last['seq']} {_change(last)}, by {plain(who)}{place}"]
    for entry in space["noted"]:
        who = entry["agent"] or entry["person"] or "somebody"
        text = f"#{entry['seq']} {_change(entry)}, by {who}: {entry['note']}"
        lines.append(plain(f"note: {text}"))
    return "\n".join(lines)


def _row(row: dict[str, Any]) -> tuple[str, ...]:
    left, last = row["lease_seconds"], row["last_entry"]
    lease = "" if left is None else duration(left) if left > 0 else f"over for {duration(-left)}"
    return (
        plain(row["branch"] or row["path"] or row["worktree_id"] or "-"),
        plain(row["agent"] or "nobody"),
        row["status"] or "",
        plain(row["task"] or "-"),
        duration(row["seconds"]),
        lease,
        plain(", ".join(row["waiting_for"])) or "-",
        f"#{last['seq']} {_change(last)}" if last else "-",
    )


def _change(entry: dict[str, Any]) -> str:
    return f"{entry['op']} {plain(entry['key'])}"


def _in_worktree(space: dict[str, Any], worktree_id: str | None) -> str:
    if worktree_id is None:
        return ""
    names = {each["worktree_id"]: each["branch"] or each["path"] for each in space["worktrees"]}
    return f", in {plain(names.get(worktree_id) or worktree_id)}"
