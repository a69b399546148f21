"""The plan for documents: as Mermaid, and as DOT for Graphviz.

Arrows lead from what is waited for to what waits. The critical path has thick borders and arrows,
so that it is seen without colours too; states are written below the names.
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
"""How much Mermaid draws by default: fewer arrows than that, and no more characters."""
_SPECIAL = re.compile(r"""[#&<>"`%*~]|(?<!\w)_|_(?!\w)""")
_LIST = re.compile(r"^(\s*\d*)([-+.)])(?=\s)")


def mermaid(answer: dict[str, Any]) -> str:
    """The plan as a Mermaid flowchart."""
    if not answer["tasks"]:
        return 'flowchart LR\n  nothing["nothing is left to do"]'
    named = _node_names(answer)
    lines = ["flowchart LR"]
    for phase, tasks in _by_phase(answer):
        indent = "  "
        if phase is not None:
            lines.append(f'  subgraph {named[phase["id"]]}["{mermaid_text(phase["name"])}"]')
            indent = "    "
        for task in tasks:
            label = f"{mermaid_text(task['name'])}<br/>{task['state']}"
            lines.append(f'{indent}{named[task["id"]]}["{label}"]:::{task["state"]}')
        if phase is not None:
            lines.append("  end")
    for one, other, thick in _arrows(answer):
        lines.append(f"  {named[one]} {'==>' if thick else '-->'} {named[other]}")
    used = {task["state"] for task in answer["tasks"]}
    lines += [
        f"  classDef {state} fill:{fill},stroke:#666,color:#000"
        for state, fill in FILLS.items()
        if state in used
    ]
    lines += [f"  style {named[key]} stroke-width:4px" for key in answer["critical_path"]]
    return "\n".join(lines)


def fits_mermaid(text: str) -> bool:
    """Whether Mermaid draws a chart of this size without being told to."""
    arrows = sum("-->" in line or "==>" in line for line in text.splitlines())
    return arrows < MERMAID_ARROWS and len(text) <= MERMAID_TEXT


def dot(answer: dict[str, Any]) -> str:
    """The plan as a DOT digraph; phases are clusters, and arrows between them lead edge to edge."""
    named = _node_names(answer)
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
            lines.append(f"  subgraph cluster_{named[phase['id']]} {{")
            lines.append(f"    label={dot_text(phase['name'])};")
            indent = "    "
        for task in tasks:
            label = dot_text(task["name"], f"\\n{task['state']}")
            width = ", penwidth=4" if task["critical"] else ""
            fill = FILLS[task["state"]]
            lines.append(f'{indent}{named[task["id"]]} [label={label}, fillcolor="{fill}"{width}];')
        if phase is not None:
            lines.append("  }")
    # An arrow of a cluster begins or ends at a node in it, and is cut off at its edge.
    first = {phase["id"]: tasks[0]["id"] for phase, tasks in _by_phase(answer) if phase}
    for one, other, thick in _arrows(answer):
        more = ["penwidth=4"] if thick else []
        more += [f"ltail=cluster_{named[one]}"] if one in first else []
        more += [f"lhead=cluster_{named[other]}"] if other in first else []
        ends = f"{named[first.get(one, one)]} -> {named[first.get(other, other)]}"
        lines.append(f"  {ends} [{', '.join(more)}];" if more else f"  {ends};")
    return "\n".join([*lines, "}"])


def mermaid_text(text: str) -> str:
    """A name between Mermaid's quotes: no quote, entity, tag, comment, list or emphasis."""

    def encode(found: re.Match[str]) -> str:
        return f"#{ord(found[0])};"

    shown = _SPECIAL.sub(encode, plain(text))
    return _LIST.sub(lambda found: f"{found[1]}#{ord(found[2])};", shown)


def dot_text(text: str, behind: str = "") -> str:
    """A name in DOT's quotes; no escape or entity in it is taken for one."""
    shown = plain(text).replace("\\", "\\\\").replace('"', '\\"').replace("&", "&amp;")
    return f'"{shown}{behind}"'


def _node_names(answer: dict[str, Any]) -> dict[str, str]:
    """Short names for tasks and phases that no language takes for a word of its own."""
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
    """Pairs of what is waited for and what waits, and whether the critical path goes along."""
    path = answer["critical_path"]
    steps = set(pairwise(path))
    phase_of = {task["id"]: task["phase_id"] for task in answer["tasks"]}
    steps |= {(phase_of[one], phase_of[other]) for one, other in steps}
    for each in (*answer["phases"], *answer["tasks"]):
        for other in each["after"]:
            yield other, each["id"], (other, each["id"]) in steps
