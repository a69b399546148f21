"""Text for people from `checkpoint threads|list|show|diff|copy|prune|rm`."""

import json
from typing import Any

from herdbook.entrypoints.cli.terminal import table
from herdbook.entrypoints.cli.text import plain, plain_lines, plural, shorten, size
from herdbook.entrypoints.operations.checkpoints.preview import line, lines

MAX_WIDTH = 100
MAX_NAMES = 3
"""How many namespaces of a thread are named."""


def threads(answer: list[dict[str, Any]]) -> str:
    """One line for each thread, and the total size."""
    if not answer:
        return "no checkpoints are kept here yet"
    rows = [
        (
            shorten(plain(each["thread_id"]), MAX_WIDTH),
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
            f"{plural(len(answer), 'thread')}, {total}",
        ]
    )


def _namespaces(names: list[str]) -> str:
    own = [shorten(plain(name), 40) for name in names if name]
    more = f" +{len(own) - MAX_NAMES}" if len(own) > MAX_NAMES else ""
    return ", ".join(own[:MAX_NAMES]) + more or "-"


def list_(answer: list[dict[str, Any]]) -> str:
    """One line for each checkpoint, newest first."""
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
    return table(header, rows, "there are no more checkpoints")


def show(answer: dict[str, Any]) -> str:
    """The checkpoint, its metadata, one line for each value, and how to resume from it.

    A single requested channel is shown whole.
    """
    if answer["channel"] is not None:
        (channel,) = answer["values"].values()
        return plain_lines(json.dumps(channel["value"], ensure_ascii=False, indent=2))
    head = [
        ("thread", plain(answer["thread_id"])),
        ("namespace", plain(answer["namespace"]) or "-"),
        ("checkpoint", plain(answer["checkpoint_id"])),
        ("parent", plain(answer["parent_id"] or "-")),
        ("at", _at(answer["at"])),
        ("metadata", line(answer["metadata"], MAX_WIDTH)),
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
    return "\n".join([*parts, "to go on from here, or to fork", f"  {plain_lines(config)}"])


def _values(values: dict[str, Any]) -> list[str]:
    names = {name: shorten(plain(name), 30) for name in values}
    widest = max(map(len, names.values()), default=0)
    return [
        f"  {names[name]:{widest}}  {size(each['bytes']):>9}  {line(each['value'], 70)}"
        for name, each in values.items()
    ]


def diff(answer: dict[str, Any]) -> str:
    """Both checkpoints, then every difference under the name of its channel."""
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
        found.append(f"unchanged: {shorten(names, MAX_WIDTH)}")
    return "\n".join(found)


def _changes(name: str, answer: dict[str, Any]) -> list[str]:
    found = [name] if name and answer["differences"] else []
    for each in answer["differences"]:
        path = shorten(plain(each["path"]), 60)
        before, after = lines(each["before"], each["after"], MAX_WIDTH)
        where = f"{path}: " if path else ""
        if each["change"] != "added":
            found.append(f"  - {where}{before}")
        if each["change"] != "removed":
            found.append(f"  + {where}{after}")
    if answer["more"]:
        found.append(f"  and {answer['more']} more; --limit shows more of them")
    return found


def _checkpoint_title(each: dict[str, Any]) -> str:
    namespace = f"  in {plain(each['namespace'])}" if each["namespace"] else ""
    return (
        f"{plain(each['checkpoint_id'])}  step {_text(each['step'])}  {_at(each['at'])}{namespace}"
    )


def copy(answer: dict[str, Any]) -> str:
    """How many checkpoints were copied, and how many were there already."""
    kept = f", {answer['kept']} were there already" if answer["kept"] else ""
    target = plain(answer["target"])
    return f"{plural(answer['copied'], 'checkpoint')} copied to {target}{kept}"


def prune(answer: dict[str, Any]) -> str:
    """What each thread loses and keeps, and the space that is freed."""
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
    """What is removed, and the space that is freed."""
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
    what = f"{plural(freed['checkpoints'], 'checkpoint')} and {plural(freed['writes'], 'write')}"
    if answer["preview"]:
        return f"would remove {what}, {size(freed['bytes'])}; nothing was changed"
    return f"removed {what}; {size(freed['bytes'])} in the store are free again"


def import_report(answer: dict[str, Any]) -> str:
    """What was added, was there already or failed, and the sizes before and after."""
    failed = answer["failed"]
    added = f"{plural(answer['added'], 'checkpoint')} and {plural(answer['writes_added'], 'write')}"
    kept = f"{plural(answer['kept'], 'checkpoint')} and {plural(answer['writes_kept'], 'write')}"
    found = [
        f"{plain(answer['source'])} -> {answer['target']}",
        f"  {plural(answer['threads'], 'thread')}: {added} added, {len(failed)} failed",
        f"  {kept} were there already and stay as they are",
        f"  {size(answer['bytes_before'])} in the file, {size(answer['bytes_after'])} here",
    ]
    if answer["writes_left_out"]:
        found.append(
            f"  {plural(answer['writes_left_out'], 'write')} left out: their checkpoints are not "
            "in the file, so no graph could read them"
        )
    found += [f"  {plain(each['key'])}: {plain(each['reason'])}" for each in failed]
    return "\n".join(found)


def _size(amount: int | None) -> str:
    return "nothing" if amount is None else size(amount)


def _at(moment: str | None) -> str:
    return plain(moment or "-")[:19].replace("T", " ")


def _text(value: Any) -> str:
    return "-" if value is None else plain(str(value))
