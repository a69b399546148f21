"""Hooks in the JSON settings of Claude Code and Codex: putting ours in and taking them out.

Both keep `hooks` as an object of events, each with a list of groups, each with a list of commands.
What is not ours keeps every byte.
"""

import json
import shlex
from collections.abc import Mapping
from operator import itemgetter
from typing import Any

from herdbook.entrypoints.hooks.jsonc import Part, parsed, with_member, without_member

Group = Mapping[str, Any]
_OUR_FILES = ("/entrypoints/hooks/hook.py", "/entrypoints/hook.py")
"""How the path of the hook ends, now and in what earlier versions installed."""
_name = itemgetter(0)


def installed(text: str, groups: Mapping[str, Group]) -> str:
    """The text with one group of ours in each of these events; ValueError says what is in the way.

    What was ours before is replaced, so that doing it twice changes nothing.
    """
    if text.strip() and sorted(_ours(text), key=_name) == sorted(groups.items(), key=_name):
        return text
    text = uninstalled(text) if text.strip() else ""
    if not text:
        whole = {"hooks": {event: [group] for event, group in groups.items()}}
        return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"
    if _hooks(text) is None:
        text = with_member(text, parsed(text), "hooks", {})
    for event, group in groups.items():
        hooks = _hooks(text)
        assert hooks is not None  # noqa: S101 - it was put in above
        there = hooks.member(event)
        if there is None:
            text = with_member(text, hooks, event, [group])
        else:
            text = with_member(text, there, "", group)
    return text


def uninstalled(text: str) -> str:
    """The text without anything of ours, and without what stood there only to hold it."""
    if not text.strip():
        return text
    while (shorter := _without_one(text)) is not None:
        text = shorter
    return text


def is_ours(command: object, event: str) -> bool:
    """Whether a command is one that we wrote for this event."""
    try:
        words = shlex.split(command) if isinstance(command, str) else []
    except ValueError:
        return False
    by_path = len(words) > 1 and words[-2].endswith(_OUR_FILES) and "-I" in words
    return words[-1:] == [event] and (by_path or words[:-1] == ["herdbook", "hook"])


def _hooks(text: str) -> Part | None:
    whole = parsed(text)
    if not isinstance(whole.value, dict):
        raise ValueError("is not an object")  # noqa: TRY004 - what somebody wrote, not how we called
    hooks = whole.member("hooks")
    if hooks is not None and not isinstance(hooks.value, dict):
        raise ValueError("has `hooks` that are not an object")
    for event, part in hooks.members if hooks else ():
        if not isinstance(part.value, list):
            raise ValueError(f"has a `hooks.{event}` that is not a list")  # noqa: TRY004 - as above
    return hooks


def _ours(text: str) -> list[tuple[str, Any]]:
    """Every group with a command of ours, by its event."""
    hooks = _hooks(text)
    return [
        (event, group.value)
        for event, groups in (hooks.members if hooks else ())
        for _, group in groups.members
        if any(_commands_of_ours(event, group))
    ]


def _commands_of_ours(event: str, group: Part) -> list[bool]:
    """Of each command of a group whether it is ours."""
    commands = group.member("hooks")
    if commands is None or not isinstance(commands.value, list):
        return []
    return [
        isinstance(entry, dict) and is_ours(entry.get("command"), event) for entry in commands.value
    ]


def _without_one(text: str) -> str | None:
    """The text without the first thing of ours; None when there is none."""
    hooks = _hooks(text)
    for event, groups in hooks.members if hooks else ():
        for number, (_, group) in enumerate(groups.members):
            ours, commands = _commands_of_ours(event, group), group.member("hooks")
            if commands is None or not any(ours):
                continue
            if not all(ours):
                return without_member(text, commands, ours.index(True))
            return _without_group(text, event, number)
    return None


def _without_group(text: str, event: str, number: int) -> str:
    """Without one group; a list that is empty then goes too, and so does an object of them."""
    whole = parsed(text)
    hooks = whole.member("hooks")
    assert hooks is not None  # noqa: S101 - the group was found in it
    groups = hooks.member(event)
    assert groups is not None  # noqa: S101 - and in this
    if len(groups.members) > 1:
        return without_member(text, groups, number)
    if len(hooks.members) > 1:
        return without_member(text, hooks, [name for name, _ in hooks.members].index(event))
    return without_member(text, whole, [name for name, _ in whole.members].index("hooks"))
