"""Cursor's hooks: `hooks.json` of version 1, with a flat list of commands for each event."""

import json
from pathlib import Path

from herdbook.entrypoints.hooks.file_changes import (
    ChangePlan,
    content,
    plan_change,
    rewrite_text,
    without_ours,
)
from herdbook.entrypoints.hooks.json_settings import append_entries, is_ours, read_hooks
from herdbook.entrypoints.hooks.jsonc import remove_member

EVENTS = ("sessionStart", "stop")


def add_hooks(path: Path, command: str) -> ChangePlan:
    """The changes that let Cursor run a command when a session begins and when a turn ends."""
    now = content(path)
    base = without_ours(path, now, _take)
    return plan_change(path, now, rewrite_text(path, base, lambda text: _put(text, command)), base)


def remove_hooks(path: Path) -> ChangePlan:
    """The changes that restore the file, except for what others changed in it since."""
    now = content(path)
    before = without_ours(path, now, _take)
    return plan_change(path, now, before, before)


def _put(text: str, command: str) -> str:
    if not text.strip():
        fresh = {event: [{"command": command}] for event in EVENTS}
        return json.dumps({"version": 1, "hooks": fresh}, indent=2) + "\n"
    return append_entries(text, {event: {"command": command} for event in EVENTS})


def _take(text: str) -> str:
    """The text without our commands, and without lists that held only them."""
    for event in EVENTS:
        hooks = read_hooks(text) if text.strip() else None
        there = None if hooks is None else hooks.member(event)
        if hooks is None or there is None:
            continue
        ours = [
            isinstance(each, dict) and is_ours(each.get("command"), event) for each in there.value
        ]
        if ours and all(ours):
            names = [name for name, _ in hooks.members]
            text = remove_member(text, hooks, names.index(event))
        elif any(ours):
            text = remove_member(text, there, ours.index(True))
    return text
