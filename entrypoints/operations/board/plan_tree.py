"""Text for people from `plan`: a tree with each task under the dependency it waits longest for."""

from collections.abc import Iterator, Sequence
from typing import Any

from herdbook.entrypoints.cli import terminal
from herdbook.entrypoints.cli.terminal import Line
from herdbook.entrypoints.cli.text import pad, plain, plural, shorten, width

MARK = "*"
"""Marks the tasks of the critical path."""
MAX_DEPTH = 12
"""How deep the tree is indented; deeper tasks are recognized by their wave."""
MAX_WIDTH = 60
MAX_NAMES = 3
"""How many dependencies of a task are named."""
STYLES = {
    "ready": "green",
    "held": "cyan",
    "waiting": "dim",
    "blocked": "red",
    "review": "yellow",
    "completed": "dim",
}
CRITICAL = "bold magenta"
CLOSED = ("pending", "pending_review", "blocked")
"""The states of a phase in which its tasks wait for a person."""

Row = dict[str, Any]


def plan(answer: dict[str, Any]) -> str:
    """The requested Mermaid or DOT text, or the tree."""
    text: str | None = answer.get("text")
    return text if text is not None else terminal.render_lines(lines(answer))


def lines(answer: dict[str, Any]) -> list[Line]:
    """The tree, with the wave, the state and the other dependencies of each task."""
    tasks: list[Row] = answer["tasks"]
    if not tasks:
        return [[("nothing is left to do: the plan is empty, or all of it is done", "")]]
    parents = _parents(answer)
    rows = list(_rows(tasks, parents))
    drawn = {task["id"]: branch + shorten(plain(task["name"]), MAX_WIDTH) for task, branch in rows}
    broadest = max(width(text) for text in drawn.values())
    number = len(str(answer["waves"]))
    head = f"{plural(len(tasks), 'task')} in {plural(answer['waves'], 'wave')}"
    if answer["critical_path"]:
        head += f"; the critical path, marked {MARK}, has {len(answer['critical_path'])}"
    found: list[Line] = [[(head, "bold")], []]
    others = _others(answer, parents)
    for task, branch in rows:
        critical = task["critical"]
        name = drawn[task["id"]][len(branch) :]
        gap = " " * (broadest - width(drawn[task["id"]]))
        found.append(
            [
                (f"{task['wave']:>{number}} ", "dim"),
                (f"{MARK if critical else ' '} ", CRITICAL),
                (branch, "dim"),
                (name, CRITICAL if critical else ""),
                (f"{gap}  ", ""),
                (pad(task["state"], 7), STYLES[task["state"]]),
                (f"  {others[task['id']]}", "dim"),
            ]
        )
    return [*found, *_pick_up(answer)]


def _pick_up(answer: dict[str, Any]) -> list[Line]:
    """The order in which so many agents would pick up the tasks, if that was asked for."""
    asked = answer.get("pick_up")
    if asked is None:
        return []
    names = {task["id"]: shorten(plain(task["name"]), MAX_WIDTH) for task in answer["tasks"]}
    who, steps = plural(asked["agents"], "agent"), plural(len(asked["steps"]), "step")
    found: list[Line] = [[], [(f"with {who}: {steps}, if all tasks were equally long", "bold")]]
    number = len(str(len(asked["steps"])))
    for at, step in enumerate(asked["steps"], start=1):
        found.append([(f"{at:>{number}}  ", "dim"), (", ".join(names[key] for key in step), "")])
    if asked["stuck"]:
        waiting = ", ".join(names[key] for key in asked["stuck"])
        found.append([("not before a person decides: ", STYLES["blocked"]), (waiting, "")])
    return found


def _parents(answer: dict[str, Any]) -> dict[str, str]:
    """The parent of each task in the tree: one of its dependencies in the wave before it."""
    tasks: dict[str, Row] = {task["id"]: task for task in answer["tasks"]}
    after = {phase["id"]: phase["after"] for phase in answer["phases"]}
    ends: dict[tuple[str | None, int], str] = {}
    for task in sorted(tasks.values(), key=lambda task: not task["critical"]):
        ends.setdefault((task["phase_id"], task["wave"]), task["id"])
    found: dict[str, str] = {}
    for task in tasks.values():
        before = task["wave"] - 1
        depends_on = (*task["after"], *after.get(task["phase_id"], ()))
        near = [each if each in tasks else ends.get((each, before)) for each in depends_on]
        last = [key for key in near if key is not None and tasks[key]["wave"] == before]
        if last:
            found[task["id"]] = min(last, key=lambda key: not tasks[key]["critical"])
    return found


def _rows(tasks: Sequence[Row], parents: dict[str, str]) -> Iterator[tuple[Row, str]]:
    """Every task once, each after its parent, with the branch that leads to it."""
    under: dict[str | None, list[Row]] = {}
    for task in tasks:
        under.setdefault(parents.get(task["id"]), []).append(task)
    left = [(task, "", "", 0) for task in reversed(under.get(None, []))]
    while left:
        task, branch, trunk, depth = left.pop()
        yield task, branch
        children = under.get(task["id"], [])
        for at, child in enumerate(reversed(children)):
            if depth >= MAX_DEPTH:
                left.append((child, branch, trunk, depth))
                continue
            knee, trunk_part = ("└─ ", "   ") if at == 0 else ("├─ ", "│  ")
            left.append((child, trunk + knee, trunk + trunk_part, depth + 1))


def _others(answer: dict[str, Any], parents: dict[str, str]) -> dict[str, str]:
    """The dependencies of each task except its parent."""
    names = {task["id"]: plain(task["name"]) for task in answer["tasks"]}
    names |= {phase["id"]: f"phase {plain(phase['name'])}" for phase in answer["phases"]}
    after = {phase["id"]: phase["after"] for phase in answer["phases"]}
    phase_of = {task["id"]: task["phase_id"] for task in answer["tasks"]}
    closed = {
        phase["id"]: f"phase {plain(phase['name'])} is {phase['status']}"
        for phase in answer["phases"]
        if phase.get("status") in CLOSED
    }
    found = {}
    for task in answer["tasks"]:
        parent, phase = parents.get(task["id"]), task["phase_id"]
        # The dependencies of its phase are listed at a task of the same phase above it.
        listed = parent is not None and phase_of[parent] == phase
        depends_on = [*task["after"], *(() if listed else after.get(phase, ()))]
        rest = [names[key] for key in depends_on if key != parent]
        more = f", +{len(rest) - MAX_NAMES}" if len(rest) > MAX_NAMES else ""
        word = "also after" if parent in depends_on else "after"
        reasons = [f"{word} {', '.join(rest[:MAX_NAMES])}{more}"] if rest else []
        if task["state"] == "waiting" and phase in closed and not listed:
            reasons.append(closed[phase])
        found[task["id"]] = "; ".join(reasons)
    return found
