"""Help texts of the command line."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from herdbook.entrypoints.operations.registry import OPERATIONS

NOT_SUGGESTED = frozenset(
    {"rm", "remove", "prune", "release", "revert", "reinstate", "undo", "restore"}
    | {"erase", "forget", "trust"}
)
"""Agents follow hints to the letter, so none of them leads to what removes or takes back."""
REMOVING = (*NOT_SUGGESTED, "delete", "destroy", "drop", "clear", "reset")
"""Words that mean a removal; whoever types one gets no hint at all."""
DAILY = (
    "board",
    "status",
    "task.ready",
    "task.claim",
    "task.done",
    "task.release",
    "task.add",
    "task.show",
    "phase.approve",
    "search",
    "message.inbox",
    "message.add",
    "undo",
)
SET_UP = ("import.plan", "setup", "hooks.install", "mcp.install", "worktree.add", "doctor", "demo")
"""The commands of the short help, by section; one that does not exist is left out."""
MORE = {
    "the plan": "initiative phase task page project errand proposal change-set review plan import "
    "export",
    "agents": "agent worktree conversation chat message talk account log journal",
    "the record": "grade bug standing activity retro advise leaderboard recall reinstate flush",
    "stores": "where config trust sql shell copy merge check checkpoint backup restore",
}
"""The other first words by subject; those of no subject come last."""
HINTS = {
    "add": "task add",
    "agents": "agent list",
    "approve": "phase approve",
    "ask": "conversation add",
    "assign": "claim",
    "begin": "claim",
    "close": "done",
    "create": "task add",
    "deps": "task waits-for",
    "edit": "task set",
    "find": "search",
    "finish": "done",
    "get": "task show",
    "grep": "search",
    "history": "journal list",
    "inbox": "message inbox",
    "init": "import plan",
    "initiatives": "initiative list",
    "kanban": "board",
    "list": "task list",
    "ls": "task list",
    "mail": "message inbox",
    "messages": "message inbox",
    "new": "task add",
    "next": "claim",
    "phases": "phase list",
    "pick": "claim",
    "reply": "message reply",
    "say": "message add",
    "send": "message add",
    "show": "task show",
    "start": "claim",
    "stop": "agent stop",
    "take": "claim",
    "tasks": "task list",
    "tell": "message add",
    "todo": "ready",
    "update": "task set",
    "version": "--version",
    "view": "task show",
    "who": "status",
    "work": "claim",
}
"""Words that people and agents type, and the command that does what they mean."""
VERBS = {
    "all": "list",
    "begin": "claim",
    "close": "done",
    "create": "add",
    "edit": "set",
    "find": "list",
    "finish": "done",
    "get": "show",
    "ls": "list",
    "new": "add",
    "next": "claim",
    "start": "claim",
    "take": "claim",
    "update": "set",
    "view": "show",
}
"""The same for the second word of a command."""


def version() -> str:
    """The program and its version."""
    from importlib.metadata import version  # noqa: PLC0415 - 50 ms

    return f"herdbook {version('herdbook')}"


def is_group(word: str) -> bool:
    """Whether a word begins several commands."""
    return any(each.words[0] == word for each in OPERATIONS)


def overview() -> str:
    """The daily commands, and where the others are, on one screen."""
    known = {each.name: each for each in OPERATIONS}
    lines = ["usage: herdbook COMMAND [options]", ""]
    for title, names in (("every day", DAILY), ("to begin with", SET_UP)):
        shown = [known[name] for name in names if name in known]
        named = [(each.alias or " ".join(each.words), each.help) for each in shown]
        lines += [f"{title}:", *_columns(named), ""]
    lines += ["more; `herdbook WORD` lists what begins with a word:"]
    first = dict.fromkeys(each.words[0] for each in OPERATIONS)
    placed = {*" ".join(MORE.values()).split(), *DAILY, *SET_UP}
    rest = " ".join(word for word in first if word not in placed)
    for subject, words in {**MORE, "other": rest}.items():
        lines += _wrap_words(subject, [word for word in words.split() if word in first])
    lines += ["", "`herdbook help COMMAND` shows its options and an example;"]
    return "\n".join([*lines, "`herdbook --help --all` lists every command."])


def every_command(group: str = "") -> str:
    """Every command in one line each, or those of a group."""
    shown = [each for each in OPERATIONS if group in ("", each.words[0])]
    named = [(" ".join(each.words), each.help) for each in shown]
    lines = ["usage: herdbook COMMAND [options]", "", *_columns(named), ""]
    return "\n".join([*lines, "`herdbook COMMAND --help` shows the options and an example."])


def _columns(named: Sequence[tuple[str, str]]) -> list[str]:
    width = max(len(name) for name, _ in named)
    return [f"  {name:{width}}  {help_}" for name, help_ in named]


def _wrap_words(subject: str, words: Iterable[str], width: int = 90) -> list[str]:
    """A subject and its words, on as many lines as they need."""
    lines = [f"  {subject:10}  "]
    for word in words:
        if len(lines[-1]) + len(word) > width:
            lines.append(" " * 14)
        lines[-1] += f"{word}, "
    return [*(line.rstrip() for line in lines[:-1]), lines[-1].rstrip(", ")]


def describe_unknown(words: Sequence[str]) -> str:
    """The error for an unknown command, with the closest known one that removes nothing."""
    found = _find_synonym(words) or _find_closest(words)
    hint = f"did you mean `herdbook {found}`?" if found else "`herdbook --help` lists them all"
    return f"there is no such command; {hint}"


def _find_synonym(words: Sequence[str]) -> str | None:
    """The command that people mean by these words."""
    commands = {" ".join(each.words): each for each in OPERATIONS}
    if len(words) > 1 and words[1] in VERBS:
        for noun in (words[0], words[0].removesuffix("s")):
            if f"{noun} {VERBS[words[1]]}" in commands:
                return f"{noun} {VERBS[words[1]]}"
    return HINTS.get(words[0])


def _find_closest(words: Sequence[str]) -> str | None:
    commands = [" ".join(each.words) for each in OPERATIONS if each.words[-1] not in NOT_SUGGESTED]
    commands += [each.alias for each in OPERATIONS if each.alias]
    if any(get_close_matches(word, REMOVING, n=1, cutoff=0.75) for word in words[:2]):
        return None
    asked = " ".join(word for word in words[:2] if not word.startswith("-"))
    near = get_close_matches(asked, commands, n=1) or get_close_matches(words[0], commands, n=1)
    return near[0] if near else None
