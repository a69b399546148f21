"""`checkpoint threads|list|show|diff|copy|prune|rm` for people."""

import json
from typing import Any

from herdbook.entrypoints.cli.terminal import table
from herdbook.entrypoints.cli.text import plain, shorten, size
from herdbook.entrypoints.operations.checkpoints.preview import line, lines

WIDEST = 100
NAMED = 3
"""How many namespaces of a thread are named."""


def threads(answer: list[dict[str, Any]]) -> str:
    """One line for each thread, and how much that is together."""
    if not answer:
        return "no checkpoints are kept here yet"
    rows = [
        (
            shorten(plain(each["thread_id"]), WIDEST),
            str(each["checkpoints"]),
            str(each["writes"]),
            size(each["bytes"]),
            _at(each["at"]),
            _namespaces(each["namespaces"]),
        )
        for each in answer
    ]
    total = size(sum(each["bytes"] for each in answer))
    return "\n".join(
        [
            table(("THREAD", "CHECKPOINTS", "WRITES", "SIZE", "NEWEST", "NAMESPACES"), rows),
            "",
            f"{_many(len(answer), 'thread')}, {total}",
        ]
    )


def _namespaces(names: list[str]) -> str:
    own = [shorten(plain(name), 40) for name in names if name]
    more = f" +{len(own) - NAMED}" if len(own) > NAMED else ""
    return ", ".join(own[:NAMED]) + more or "-"


def list_(answer: list[dict[str, Any]]) -> str:
    """One line for each checkpoint, the newest first."""
    if not answer:
        return "there are no more checkpoints"
    rows = [
        (
            each["checkpoint_id"],
            _text(each["step"]),
            _text(each["source"]),
            _at(each["at"]),
            str(each["channels"]),
            size(each["bytes"]),
            str(each["writes"]),
            each["namespace"] or "-",
        )
        for each in answer
    ]
    header = ("CHECKPOINT", "STEP", "SOURCE", "AT", "CHANNELS", "VALUES", "WRITES", "NAMESPACE")
    return table(header, rows)


def show(answer: dict[str, Any]) -> str:
    """Where it is, what is said of it, one line for each value, and how to go back to it.

    A single channel that was asked for is shown whole.
    """
    if answer["channel"] is not None:
        (told,) = answer["values"].values()
        return _printable(json.dumps(told["value"], ensure_ascii=False, indent=2))
    head = [
        ("thread", plain(answer["thread_id"])),
        ("namespace", plain(answer["namespace"]) or "-"),
        ("checkpoint", plain(answer["checkpoint_id"])),
        ("parent", plain(answer["parent_id"] or "-")),
        ("at", _at(answer["at"])),
        ("metadata", line(answer["metadata"], WIDEST)),
        ("values", f"{answer['channels']}, {size(answer['bytes'])}"),
    ]
    parts = [*(f"{name:10}  {text}" for name, text in head), *_values(answer["values"])]
    if answer["writes"]:
        parts.append("writes since")
        parts += [
            f"  {shorten(plain(each['channel']), 30)} by {plain(each['task_id'])}  "
            f"{size(each['bytes'])}  {line(each['value'], 60)}"
            for each in answer["writes"]
        ]
    config = json.dumps(answer["config"], ensure_ascii=False)
    return "\n".join([*parts, "to go on from here, or to fork", f"  {_printable(config)}"])


def _values(values: dict[str, Any]) -> list[str]:
    names = {name: shorten(plain(name), 30) for name in values}
    widest = max(map(len, names.values()), default=0)
    return [
        f"  {names[name]:{widest}}  {size(each['bytes']):>9}  {line(each['value'], 70)}"
        for name, each in values.items()
    ]


def diff(answer: dict[str, Any]) -> str:
    """Both checkpoints, then every place at which they differ under the name of its channel."""
    found = [
        f"--- {_checkpoint_title(answer['before'])}",
        f"+++ {_checkpoint_title(answer['after'])}",
    ]
    found += _changes("metadata", answer["metadata"])
    for each in answer["channels"]:
        sizes = f"{_size(each['bytes_before'])} -> {_size(each['bytes_after'])}"
        found.append(f"{shorten(plain(each['channel']), 60)}  ({each['change']}, {sizes})")
        found += _changes("", each)
    if not answer["channels"]:
        found.append("no value is different")
    if answer["unchanged"]:
        names = ", ".join(plain(name) for name in answer["unchanged"])
        found.append(f"unchanged: {shorten(names, WIDEST)}")
    return "\n".join(found)


def _changes(name: str, told: dict[str, Any]) -> list[str]:
    found = [name] if name and told["differences"] else []
    for each in told["differences"]:
        path = shorten(plain(each["path"]), 60)
        before, after = lines(each["before"], each["after"], WIDEST)
        where = f"{path}: " if path else ""
        if each["change"] != "added":
            found.append(f"  - {where}{before}")
        if each["change"] != "removed":
            found.append(f"  + {where}{after}")
    if told["more"]:
        found.append(f"  and {told['more']} more; --limit shows more of them")
    return found


def _checkpoint_title(each: dict[str, Any]) -> str:
    lane = f"  in {plain(each['namespace'])}" if each["namespace"] else ""
    return f"{plain(each['checkpoint_id'])}  step {_text(each['step'])}  {_at(each['at'])}{lane}"


def copy(answer: dict[str, Any]) -> str:
    """What came, and what was there."""
    kept = f", {answer['kept']} were there already" if answer["kept"] else ""
    target = plain(answer["target"])
    return f"{_many(answer['copied'], 'checkpoint')} copied to {target}{kept}"


def prune(answer: dict[str, Any]) -> str:
    """What each thread loses and keeps, and the room that is free then."""
    rows = [
        (
            plain(each["thread_id"]),
            str(each["freed"]["checkpoints"]),
            size(each["freed"]["bytes"]),
            str(each["left"]["checkpoints"]),
            size(each["left"]["bytes"]),
        )
        for each in answer["threads"]
    ]
    header = ("THREAD", "REMOVED", "FREED", "KEPT", "LEFT")
    return f"{table(header, rows)}\n{_freed_space(answer)}"


def rm(answer: dict[str, Any]) -> str:
    """What goes, and the room that is free then."""
    rows = [
        (
            plain(each["thread_id"]),
            str(each["freed"]["checkpoints"]),
            str(each["freed"]["writes"]),
            size(each["freed"]["bytes"]),
        )
        for each in answer["threads"]
    ]
    return f"{table(('THREAD', 'CHECKPOINTS', 'WRITES', 'SIZE'), rows)}\n{_freed_space(answer)}"


def _freed_space(answer: dict[str, Any]) -> str:
    freed = answer["freed"]
    what = f"{_many(freed['checkpoints'], 'checkpoint')} and {_many(freed['writes'], 'write')}"
    if answer["preview"]:
        return f"would remove {what}, {size(freed['bytes'])}; nothing was changed"
    return f"removed {what}; {size(freed['bytes'])} in the store are free again"


def import_report(answer: dict[str, Any]) -> str:
    """What came, what was there, what could not come, and how large it was and is."""
    failed = answer["failed"]
    added = f"{_many(answer['added'], 'checkpoint')} and {_many(answer['writes_added'], 'write')}"
    kept = f"{_many(answer['kept'], 'checkpoint')} and {_many(answer['writes_kept'], 'write')}"
    found = [
        f"{plain(answer['source'])} -> {answer['target']}",
        f"  {_many(answer['threads'], 'thread')}: {added} added, {len(failed)} failed",
        f"  {kept} were there already and stay as they are",
        f"  {size(answer['bytes_before'])} in the file, {size(answer['bytes_after'])} here",
    ]
    if answer["writes_left_out"]:
        found.append(
            f"  {_many(answer['writes_left_out'], 'write')} left out: their checkpoints are not "
            "in the file, so no graph could read them"
        )
    found += [f"  {plain(each['key'])}: {plain(each['reason'])}" for each in failed]
    return "\n".join(found)


def _many(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def _size(amount: int | None) -> str:
    return "nothing" if amount is None else size(amount)


def _at(moment: str | None) -> str:
    return plain(moment or "-")[:19].replace("T", " ")


def _text(value: Any) -> str:
    return "-" if value is None else plain(str(value))


def _printable(text: str) -> str:
    return "\n".join(plain(each) for each in text.split("\n"))
