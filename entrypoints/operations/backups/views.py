"""Text for people from `backup`, `backup list` and `restore`."""

from typing import Any

from herdbook.entrypoints.cli.text import columns, plain, plural, size


def backup(answer: dict[str, Any]) -> str:
    """One line for each file that was written, and for each space that was not."""
    lines = []
    for each in answer["written"]:
        lines.append(
            f"{plain(each['space'])}: {plural(each['rows'], 'row')} up to {each['seq']} "
            f"in {plain(each['path'])} ({size(each['bytes'])})"
        )
        if each["digest"]:
            lines.append(f"  read back, with the digest {each['digest'][:16]}")
        if each["removed"]:
            lines.append(f"  {plural(len(each['removed']), 'older file')} removed")
    lines += [f"{plain(each['space'])}: {plain(each['reason'])}" for each in answer["failed"]]
    return "\n".join(lines or ["there was nothing to back up"])


def list_(answer: dict[str, Any]) -> str:
    """A table of files, oldest first in each space."""
    rows = [
        (
            plain(each["space"] or "?"),
            each["type"] or "?",
            (each["taken_at"] or "?")[:19].replace("T", " "),
            str(each["seq"]),
            size(each["bytes"]),
            "OK" if each["ok"] else plain(each["problem"]),
            plain(each["path"]),
        )
        for each in answer["backups"]
    ]
    if not rows:
        return f"there are no backups in {plain(answer['folder'])}"
    return columns(("SPACE", "WHAT", "TAKEN (UTC)", "SEQ", "SIZE", "STATE", "FILE"), rows)


def restore(answer: dict[str, Any]) -> str:
    """One paragraph for each space that was restored."""
    lines = [f"restored into {plain(answer['target'])}"]
    for each in answer["spaces"]:
        lines.append(
            f"  {plain(each['space'])} up to {each['seq']} from "
            f"{plural(len(each['files']), 'file')}, the last is {plain(each['files'][-1])}"
        )
        same = "as when it was copied" if each["digest"] == each["recorded"] else "now"
        lines.append(f"    both sides have the digest {each['digest'][:16]}, {same}")
        if each["salvaged"]:
            lines.append(f"    {each['salvaged']} later changes came from the damaged store")
        if each["flaws"]:
            lines.append(f"    {plural(each['flaws'], 'flaw')}; `herdbook check` shows them")
        lines += [
            f"    without their secrets: {name} {plain(', '.join(keys))}"
            for name, keys in each["masked"].items()
        ]
    return "\n".join(lines)
