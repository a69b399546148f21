"""Adds our hooks to the JSON settings of Claude Code and Codex, and removes them.

Both have `hooks` as an object of events, each with a list of groups, each with a list of commands.
Everything that is not ours keeps every byte.
"""

import json
import shlex
from collections.abc import Mapping
from operator import itemgetter
from pathlib import PurePath
from typing import Any

from herdbook.entrypoints.hooks.jsonc import JsonPart, add_member, parse_jsonc, remove_member

Group = Mapping[str, Any]
_OUR_FILES = ("/entrypoints/hooks/hook.py", "/entrypoints/hook.py")
"""How the path of the hook ends, now and in what earlier versions installed."""
_name = itemgetter(0)


def add_hooks(text: str, groups: Mapping[str, Group]) -> str:
    """The text with one group of ours for each of these events; idempotent.

    Our earlier groups are replaced. ValueError with the reason if the text cannot be changed.
    """
    if text.strip() and sorted(_our_groups(text), key=_name) == sorted(groups.items(), key=_name):
        return text
    text = remove_hooks(text) if text.strip() else ""
    if not text:
        whole = {"hooks": {event: [group] for event, group in groups.items()}}
        return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"
    return append_entries(text, groups)


def append_entries(text: str, entries: Mapping[str, Group]) -> str:
    """The text with one more entry in the list of each of these events."""
    if read_hooks(text) is None:
        text = add_member(text, parse_jsonc(text), "hooks", {})
    for event, entry in entries.items():
        hooks = read_hooks(text)
        assert hooks is not None  # noqa: S101 - it was put in above
        there = hooks.member(event)
        if there is None:
            text = add_member(text, hooks, event, [entry])
        else:
            text = add_member(text, there, "", entry)
    return text


def remove_hooks(text: str) -> str:
    """The text without our hooks, and without lists and objects that held only them."""
    if not text.strip():
        return text
    while (shorter := _remove_one(text)) is not None:
        text = shorter
    return text


def is_ours(command: object, event: str) -> bool:
    """Whether a command was written by Herdbook for this event."""
    try:
        words = shlex.split(command) if isinstance(command, str) else []
    except ValueError:
        return False
    if _is_prime(words):
        return True
    by_path = len(words) > 1 and words[-2].endswith(_OUR_FILES) and "-I" in words
    is_event = words[-1:] and words[-1].rpartition(":")[2] == event
    return bool(is_event) and (by_path or words[:-1] == ["herdbook", "hook"])


def _is_prime(words: list[str]) -> bool:
    """Whether a command is our `prime` for a hook, on any machine."""
    if "prime" not in words or "--hook-json" not in words:
        return False
    program = words[: words.index("prime")]
    by_name = len(program) == 1 and PurePath(program[0]).name == "herdbook"
    return by_name or program[-2:] == ["-m", "herdbook.entrypoints"]


def our_commands(text: str) -> list[str]:
    """Every command of ours in a text, each once; ValueError if it is not understood."""
    found = {
        entry["command"]: None
        for event, group in (_our_groups(text) if text.strip() else ())
        for entry in group.get("hooks", ())
        if isinstance(entry, dict) and is_ours(entry.get("command"), event)
    }
    return list(found)


def read_hooks(text: str) -> JsonPart | None:
    """The `hooks` of a text, if it has any; ValueError if they are not lists by event."""
    whole = parse_jsonc(text)
    if not isinstance(whole.value, dict):
        raise ValueError("is not an object")  # noqa: TRY004 - what somebody wrote, not how we called
    hooks = whole.member("hooks")
    if hooks is not None and not isinstance(hooks.value, dict):
        raise ValueError("has `hooks` that are not an object")
    for event, part in hooks.members if hooks else ():
        if not isinstance(part.value, list):
            raise ValueError(f"has a `hooks.{event}` that is not a list")  # noqa: TRY004 - as above
    return hooks


def _our_groups(text: str) -> list[tuple[str, Any]]:
    """Every group with a command of ours, with its event."""
    hooks = read_hooks(text)
    return [
        (event, group.value)
        for event, groups in (hooks.members if hooks else ())
        for _, group in groups.members
        if any(_which_are_ours(event, group))
    ]


def _which_are_ours(event: str, group: JsonPart) -> list[bool]:
    """For each command of a group whether it is ours."""
    commands = group.member("hooks")
    if commands is None or not isinstance(commands.value, list):
        return []
    return [
        isinstance(entry, dict) and is_ours(entry.get("command"), event) for entry in commands.value
    ]


def _remove_one(text: str) -> str | None:
    """The text without our first command or group; None if there is none."""
    hooks = read_hooks(text)
    for event, groups in hooks.members if hooks else ():
        for number, (_, group) in enumerate(groups.members):
            ours, commands = _which_are_ours(event, group), group.member("hooks")
            if commands is None or not any(ours):
                continue
            if not all(ours):
                return remove_member(text, commands, ours.index(True))
            return _remove_group(text, event, number)
    return None


def _remove_group(text: str, event: str, number: int) -> str:
    """The text without one group, and without the list and the object if they become empty."""
    whole = parse_jsonc(text)
    hooks = whole.member("hooks")
    assert hooks is not None  # noqa: S101 - the group was found in it
    groups = hooks.member(event)
    assert groups is not None  # noqa: S101 - and in this
    if len(groups.members) > 1:
        return remove_member(text, groups, number)
    if len(hooks.members) > 1:
        return remove_member(text, hooks, [name for name, _ in hooks.members].index(event))
    return remove_member(text, whole, [name for name, _ in whole.members].index("hooks"))
