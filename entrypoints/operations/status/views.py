"""Text for people from `status`, one table over all worktrees, and from `waiting`."""

from shlex import quote
from typing import Any

from herdbook.entrypoints.cli.terminal import table
from herdbook.entrypoints.cli.text import duration, plain
from herdbook.entrypoints.operations.action_words import action_words

MOST_IDLE = 10
"""How many worktrees without agents are named."""
HEADER = ("WORKTREE", "AGENT", "STATUS", "TASK", "SINCE", "LEASE LEFT", "WAITS FOR", "LAST CHANGE")


def status(answer: dict[str, Any]) -> str:
    """A table for each space, and the settings that override the user's own; or one line."""
    if "line" in answer:
        return str(answer["line"])
    notes = [f"note: {plain(each)}" for each in answer["notes"]]
    several = len(answer["spaces"]) > 1
    spaces = [_space(each, _place(each) if several else "") for each in answer["spaces"]]
    return "\n\n".join([*spaces, *notes])


def _place(space: dict[str, Any]) -> str:
    """Which repository a space is of: its store, and its folder if the store is not below it."""
    main = next((each["path"] for each in space["worktrees"] if each["is_main"]), None)
    folder = f", of {main}" if main is not None and main not in space["url"] else ""
    return plain(f" in {space['url']}{folder}")


def _space(space: dict[str, Any], place: str) -> str:
    tasks, last = space["tasks"], space["last_entry"]
    counts = ", ".join(f"{tasks[state]} {state}" for state in ("ready", "held", "waiting"))
    lines = [f"{space['space']}{place}: tasks {counts}"]
    if space["rows"]:
        lines += ["", table(HEADER, [_row(row) for row in space["rows"]])]
    else:
        lines.append("nobody is at work here")
    lines += _idle_worktrees(space)
    if last is not None:
        who = last["agent"] or last["person"] or "somebody"
        place = _in_worktree(space, last["worktree_id"])
        lines += ["", f"last change: #{last['seq']} {_change(last)}, by {plain(who)}{place}"]
    for entry in space["noted"]:
        who = entry["agent"] or entry["person"] or "somebody"
        text = f"#{entry['seq']} {_change(entry)}, by {who}: {entry['note']}"
        lines.append(plain(f"note: {text}"))
    return "\n".join(lines)


def _idle_worktrees(space: dict[str, Any]) -> list[str]:
    """The worktrees in which nobody is at work, in a line."""
    busy = {row["worktree_id"] for row in space["rows"]}
    idle = [
        plain(each["branch"] or each["path"])
        for each in space["worktrees"]
        if each["worktree_id"] not in busy
    ]
    more = f" and {len(idle) - MOST_IDLE} more" if len(idle) > MOST_IDLE else ""
    return [f"without agents: {', '.join(idle[:MOST_IDLE])}{more}"] if idle and busy else []


def _row(row: dict[str, Any]) -> tuple[str, ...]:
    left, last = row["lease_seconds"], row["last_entry"]
    unknown = "not known" if row["task"] else ""
    lease = (
        unknown if left is None else duration(left) if left > 0 else f"over for {duration(-left)}"
    )
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
    return f"{entry['op']} {plain(entry['name'] or entry['key'])}"


def _in_worktree(space: dict[str, Any], worktree_id: str | None) -> str:
    if worktree_id is None:
        return ""
    names = {each["worktree_id"]: each["branch"] or each["path"] for each in space["worktrees"]}
    return f", in {plain(names.get(worktree_id) or worktree_id)}"


def waiting(answer: list[dict[str, Any]]) -> str:
    """What waits for a person, with the commands that answer it, and of what there is more."""
    if not answer:
        return "nothing waits for you"
    cut = dict.fromkeys(each["kind"] for each in answer if each.get("cut"))
    more = [f"more than the {len(answer)} above wait for you ({', '.join(cut)})"] if cut else []
    return "\n\n".join([*(_queue_entry(each) for each in answer), *more])


def _queue_entry(entry: dict[str, Any]) -> str:
    lines = [f"! {plain(entry['title'])}"]
    lines += [f"  {plain(each)}" for each in entry["text"].splitlines()]
    commands = dict.fromkeys(_command(each) for each in entry["actions"])
    return "\n".join([*lines, *(f"    {each}" for each in commands)])


def _command(action: dict[str, Any]) -> str:
    """The command of an action; what a person writes stands for itself."""
    options, values = action_words(action)
    words = [plain(each) for each in (*values, *options)]
    shown = [quote(each) if " " in each else each for each in words]
    text = ["TEXT"] if action["text"] else []
    split = len(values)
    return " ".join(
        ["herdbook", *action["method"].split("."), *shown[:split], *text, *shown[split:]]
    )
