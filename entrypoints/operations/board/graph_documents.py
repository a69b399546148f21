"""The plan as a graph for documents: Mermaid, and DOT for Graphviz.

Arrows lead from a dependency to the task or phase that depends on it. The critical path has thick
borders and arrows, so that it is visible without colours too; states are written below the names.
"""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from herdbook.entrypoints.cli.text import plain

FILLS = {
    "ready": "#dcf5dc",
    "held": "#d6e9ff",
    "waiting": "#f2f2f2",
    "blocked": "#ffdcdc",
    "review": "#fff3cd",
}
MERMAID_ARROWS, MERMAID_TEXT = 500, 50_000
"""Mermaid's default limits: fewer arrows than this, and at most so many characters."""
_SPECIAL = re.compile(r"""[#&<>"`%*~]|(?<!\w)_|_(?!\w)""")
_LIST = re.compile(r"^(\s*\d*)([-+.)])(?=\s)")


def mermaid(answer: dict[str, Any]) -> str:
    """The plan as a Mermaid flowchart."""
    if not answer["tasks"]:
        return 'flowchart LR\n  nothing["nothing is left to do"]'
    names = _node_names(answer)
    lines = ["flowchart LR"]
    for phase, tasks in _by_phase(answer):
        indent = "  "
        if phase is not None:
            lines.append(f'  subgraph {names[phase["id"]]}["{mermaid_text(phase["name"])}"]')
            indent = "    "
        for task in tasks:
            label = f"{mermaid_text(task['name'])}<br/>{task['state']}"
            lines.append(f'{indent}{names[task["id"]]}["{label}"]:::{task["state"]}')
        if phase is not None:
            lines.append("  end")
    for one, other, thick in _arrows(answer):
        lines.append(f"  {names[one]} {'==>' if thick else '-->'} {names[other]}")
    used = {task["state"] for task in answer["tasks"]}
    lines += [
        f"  classDef {state} fill:{fill},stroke:#666,color:#000"
        for state, fill in FILLS.items()
        if state in used
    ]
    lines += [f"  style {names[key]} stroke-width:4px" for key in answer["critical_path"]]
    return "\n".join(lines)


def fits_mermaid(text: str) -> bool:
    """Whether Mermaid draws a chart of this size with its default limits."""
    arrows = sum("-->" in line or "==>" in line for line in text.splitlines())
    return arrows < MERMAID_ARROWS and len(text) <= MERMAID_TEXT


def dot(answer: dict[str, Any]) -> str:
    """The plan as a DOT digraph; phases are clusters, and arrows between them join their edges."""
    names = _node_names(answer)
    lines = [
        "digraph plan {",
        "  compound=true;",
        "  rankdir=LR;",
        '  node [shape=box, style=filled, fontname="sans-serif"];',
    ]
    if not answer["tasks"]:
        lines.append('  nothing [label="nothing is left to do"];')
    for phase, tasks in _by_phase(answer):
        indent = "  "
        if phase is not None:
            lines.append(f"  subgraph cluster_{names[phase['id']]} {{")
            lines.append(f"    label={dot_text(phase['name'])};")
            indent = "    "
        for task in tasks:
            label = dot_text(task["name"], f"\\n{task['state']}")
            width = ", penwidth=4" if task["critical"] else ""
            fill = FILLS[task["state"]]
            lines.append(f'{indent}{names[task["id"]]} [label={label}, fillcolor="{fill}"{width}];')
        if phase is not None:
            lines.append("  }")
    # An arrow of a cluster starts or ends at a node in it, and is clipped at the cluster's edge.
    first = {phase["id"]: tasks[0]["id"] for phase, tasks in _by_phase(answer) if phase}
    for one, other, thick in _arrows(answer):
        more = ["penwidth=4"] if thick else []
        more += [f"ltail=cluster_{names[one]}"] if one in first else []
        more += [f"lhead=cluster_{names[other]}"] if other in first else []
        ends = f"{names[first.get(one, one)]} -> {names[first.get(other, other)]}"
        lines.append(f"  {ends} [{', '.join(more)}];" if more else f"  {ends};")
    return "\n".join([*lines, "}"])


def mermaid_text(text: str) -> str:
    """A name inside Mermaid's quotes: no quote, entity, tag, comment, list or emphasis."""

    def encode(found: re.Match[str]) -> str:
        return f"#{ord(found[0])};"

    shown = _SPECIAL.sub(encode, plain(text))
    return _LIST.sub(lambda found: f"{found[1]}#{ord(found[2])};", shown)


def dot_text(text: str, suffix: str = "") -> str:
    """A name inside DOT's quotes; escapes and entities in it are escaped."""
    shown = plain(text).replace("\\", "\\\\").replace('"', '\\"').replace("&", "&amp;")
    return f'"{shown}{suffix}"'


def _node_names(answer: dict[str, Any]) -> dict[str, str]:
    """Short node names for tasks and phases that are no keywords of either language."""
    tasks = {task["id"]: f"t{at}" for at, task in enumerate(answer["tasks"], start=1)}
    return tasks | {phase["id"]: f"p{at}" for at, phase in enumerate(answer["phases"], start=1)}


def _by_phase(
    answer: dict[str, Any],
) -> Iterator[tuple[dict[str, Any] | None, list[dict[str, Any]]]]:
    inside: dict[str | None, list[dict[str, Any]]] = {}
    for task in answer["tasks"]:
        inside.setdefault(task["phase_id"], []).append(task)
    for phase in answer["phases"]:
        yield phase, inside[phase["id"]]
    if None in inside:
        yield None, inside[None]


def _arrows(answer: dict[str, Any]) -> Iterator[tuple[str, str, bool]]:
    """Pairs of a dependency and its dependent, and whether the critical path includes the pair."""
    path = answer["critical_path"]
    steps = set(pairwise(path))
    phase_of = {task["id"]: task["phase_id"] for task in answer["tasks"]}
    steps |= {(phase_of[one], phase_of[other]) for one, other in steps}
    for each in (*answer["phases"], *answer["tasks"]):
        for other in each["after"]:
            yield other, each["id"], (other, each["id"]) in steps
