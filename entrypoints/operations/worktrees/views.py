"""Text for people from `worktree add|list|remove|prune`."""

from typing import Any

from herdbook.entrypoints.cli.terminal import table
from herdbook.entrypoints.cli.text import plain


def add(answer: dict[str, Any]) -> str:
    """The new worktree and the links in it."""
    branch = plain(answer["branch"] or "no branch")
    lines = [f"{plain(answer['path'])}  ({branch}, {answer['worktree_id']})"]
    lines += [f"  {plain(each['link'])} -> {plain(each['target'])}" for each in answer["links"]]
    return "\n".join(lines)


def list_(answer: dict[str, Any]) -> str:
    """One line for each worktree."""
    rows = [
        (
            each["worktree_id"] or "-",
            plain(each["branch"] or "-"),
            "main" if each["is_main"] else each["state"],
            plain(each["path"]),
        )
        for each in answer["worktrees"]
    ]
    return table(("WORKTREE", "BRANCH", "STATE", "PATH"), rows)


def remove(answer: dict[str, Any]) -> str:
    """What was removed, what is kept, and who was in it."""
    return "\n".join(
        [
            f"removed {_title(answer)}; its branch and its history stay",
            *(f"  its {each['area']} are kept in {each['url']}" for each in answer["archived"]),
            *_occupants(answer),
        ]
    )


def prune(answer: dict[str, Any]) -> str:
    """The entries that were removed."""
    if not answer["pruned"]:
        return "nothing to forget: every worktree's folder is there"
    return "\n".join(
        line
        for each in answer["pruned"]
        for line in (f"forgot {_title(each)}; its branch and its history stay", *_occupants(each))
    )


def _title(each: dict[str, Any]) -> str:
    return f"{plain(each['path'])} ({plain(each['branch'] or 'no branch')}, {each['worktree_id']})"


def _occupants(each: dict[str, Any]) -> list[str]:
    lines = [f"  agent {plain(agent['name'])}, {agent['status']}" for agent in each["agents"]]
    tasks = [
        f"  task {task['id']}, {task['status']}: {plain(task['name'])}" for task in each["tasks"]
    ]
    return lines + tasks or ["  no agent was in it and no task was held there"]
