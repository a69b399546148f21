"""Text for people from `where`, `config` and `trust`."""

from typing import Any

from herdbook.entrypoints.cli.terminal import table
from herdbook.entrypoints.cli.text import plain, size


def where(answer: dict[str, Any]) -> str:
    """One paragraph for each area."""
    doubt = plain(answer["doubt"] or "")
    outside = doubt or "this is not inside a git repository"
    lines = [
        f"repository  {answer['repository_id'] or f'none: {outside}'}",
        f"worktree    {answer['worktree_id'] or (f'none: {doubt}' if doubt else 'none')}",
        f"branch      {plain(answer['branch'] or 'none')}",
    ]
    for area, each in answer["areas"].items():
        if each["exists"]:
            state = f"{size(each['bytes'])}, schema {each['schema_version']}"
        else:
            state = "not there yet" if each["exists"] is False else "unknown"
        by = plain(each["decided_by"])
        scope = f"scope {each['scope']}, " if each["scope"] else ""
        lines += [
            "",
            f"{area:12}{each['url']}",
            f"{'':12}{scope}by {by}; {state}",
            *(f"{'':12}note: {plain(note)}" for note in each["notes"]),
        ]
    return "\n".join(lines)


def config(answer: dict[str, Any]) -> str:
    """One line for each setting."""
    rows = [
        (
            key,
            "not set" if each["value"] is None else plain(str(each["value"])),
            plain("; ".join([each["origin"], *each.get("notes", ())]))
            + ("" if each["trusted"] else " (not trusted)"),
        )
        for key, each in answer.items()
    ]
    return table(("SETTING", "VALUE", "ORIGIN"), rows)


def trust(answer: dict[str, Any]) -> str:
    """What is trusted from now on."""
    if "store" in answer:
        store = plain(answer["store"])
        if answer["new"]:
            return f"{store} is gone; the next write makes an empty one in its place"
        return f"{store} is trusted" if answer["trusted"] else f"{store} is no longer trusted"
    if not answer["trusted"]:
        return f"{plain(answer['file'])} is no longer trusted"
    settings = [f"  {key} = {plain(str(value))}" for key, value in answer["settings"].items()]
    also = [f"{plain(each)} is trusted as it is now" for each in answer.get("also", ())]
    return "\n".join([f"{plain(answer['file'])} is trusted as it is now:", *settings, *also])
