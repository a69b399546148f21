"""The plan as a picture: an SVG file of waves from left to right and phases from top to bottom.

It loads nothing, has no scripts, and follows the reader's light or dark colours. States have a mark
and a word besides their colour; the critical path has thick lines.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any
from xml.sax.saxutils import escape

from herdbook.domain.plan.graph_layout import (
    GraphLayout,
    GridPlace,
    NodeToPlace,
    PhaseBand,
    lay_out,
)
from herdbook.entrypoints.cli.text import plain, shorten

NAMESPACE = "http://www.w3.org/2000/svg"
WIDTH, HEIGHT = 210, 40
"""The size of a task's box."""
ACROSS, DOWN = 270, 52
"""The distances of two columns and of two rows."""
HEAD = 26
"""The height of a phase's title."""
EDGE = 16
NAME = 26
"""How many characters of a name are shown; the whole name is in the title."""
MARKS = {"held": "◐", "ready": "○", "waiting": "◌", "blocked": "■", "review": "◇"}
COLOURS = {
    "held": ("#1b4595", "#8db9f5"),
    "ready": ("#0392a1", "#1f8c97"),
    "waiting": ("#5c6068", "#c9ccd3"),
    "blocked": ("#a1251e", "#e0364c"),
    "review": ("#ad6fe6", "#a95fd0"),
}

Data = dict[str, Any]


def place_tasks(answer: Data) -> GraphLayout:
    """The places of the tasks of a plan in a drawing."""
    return lay_out(
        [
            NodeToPlace(task["id"], task["wave"], task["phase_id"], tuple(task["after"]))
            for task in answer["tasks"]
        ],
        [phase["id"] for phase in answer["phases"]],
    )


def svg(answer: Data) -> str:
    """The plan as an SVG document."""
    tasks: list[Data] = answer["tasks"]
    phases = {phase["id"]: phase for phase in answer["phases"]}
    layout = place_tasks(answer)
    across = EDGE * 2 + max(1, layout.columns) * ACROSS - (ACROSS - WIDTH)
    down = EDGE * 2 + layout.rows * DOWN + len(layout.bands) * HEAD
    body = [*_bands(layout, phases, across), *_arrows(answer, layout), *_boxes(tasks, layout)]
    if not tasks:
        down += HEAD
        body = [f'<text x="{EDGE}" y="{EDGE + 14}">nothing is left to do</text>']
    label = f"The plan: {len(tasks)} unfinished tasks in {answer['waves']} waves"
    size = f'width="{across}" height="{down}"'
    return "\n".join(
        [
            f'<svg xmlns="{NAMESPACE}" {size} viewBox="0 0 {across} {down}" role="img">',
            f"<title>{label}</title>",
            f"<style>{_style()}</style>",
            f'<rect class="page" {size}/>',
            *body,
            "</svg>",
        ]
    )


def _style() -> str:
    light, dark = (
        "".join(f".{state}{{--state:{pair[at]}}}" for state, pair in COLOURS.items())
        for at in (0, 1)
    )
    return (
        "svg{--page:#fbfbfc;--box:#fff;--line:#b9bec8;--text:#1b1e24;--mute:#59606b;"
        "font:12px system-ui,sans-serif}"
        f"{light}"
        "@media(prefers-color-scheme:dark){svg{--page:#111318;--box:#171a20;--line:#4a505c;"
        f"--text:#e6e8ec;--mute:#9aa3af}}{dark}}}"
        ".page{fill:var(--page)}text{fill:var(--text)}.mute{fill:var(--mute)}"
        ".phase{font-weight:600}.rule{stroke:var(--line);stroke-width:.5}"
        ".box{fill:var(--box);stroke:var(--state);stroke-width:1}.mark{fill:var(--state)}"
        ".arrow{fill:none;stroke:var(--line);stroke-width:1}"
        ".critical .box{stroke-width:3}.arrow.critical{stroke:var(--text);stroke-width:2}"
    )


def _place(layout: GraphLayout, spot: GridPlace) -> tuple[int, int]:
    """The upper left corner of a box."""
    titles = sum(band.first_row <= spot.row for band in layout.bands)
    return EDGE + spot.column * ACROSS, EDGE + spot.row * DOWN + titles * HEAD


def _bands(layout: GraphLayout, phases: dict[str, Data], across: int) -> Iterator[str]:
    for at, band in enumerate(layout.bands):
        top = EDGE + band.first_row * DOWN + at * HEAD
        if at:
            yield f'<line class="rule" x1="0" x2="{across}" y1="{top - 6}" y2="{top - 6}"/>'
        yield f'<text class="phase" x="{EDGE}" y="{top + 14}">{_title(band, phases)}</text>'


def _title(band: PhaseBand, phases: dict[str, Data]) -> str:
    if band.id is None:
        return "without a phase"
    phase = phases[band.id]
    names = [phases[key]["name"] for key in phase["after"] if key in phases]
    after = f", after {', '.join(names)}" if names else ""
    return _text(f"{phase['name']} ({phase['status'].replace('_', ' ')}{after})", NAME * 5)


def _boxes(tasks: list[Data], layout: GraphLayout) -> Iterator[str]:
    for task in tasks:
        left, top = _place(layout, layout.spots[task["id"]])
        state = task["state"]
        critical = " critical" if task["critical"] else ""
        yield (
            f'<g class="{state}{critical}"><title>{_text(task["name"])}</title>'
            f'<rect class="box" x="{left}" y="{top}" width="{WIDTH}" height="{HEIGHT}" rx="4"/>'
            f'<text x="{left + 10}" y="{top + 17}">{_text(task["name"], NAME)}</text>'
            f'<text class="mark" x="{left + 10}" y="{top + 32}">{MARKS[state]}</text>'
            f'<text class="mute" x="{left + 24}" y="{top + 32}">{state}</text></g>'
        )


def _arrows(answer: Data, layout: GraphLayout) -> Iterator[str]:
    steps = set(pairwise(answer["critical_path"]))
    edges = [(other, task["id"]) for task in answer["tasks"] for other in task["after"]]
    # A phase that a task waits for is no box: its band says so. Thick lines lie above thin ones.
    for edge in sorted((each for each in edges if each[0] in layout.spots), key=steps.__contains__):
        begin, height = _place(layout, layout.spots[edge[0]])
        left, top = _place(layout, layout.spots[edge[1]])
        critical = " critical" if edge in steps else ""
        half = left - (ACROSS - WIDTH) // 2
        start = f"M{begin + WIDTH} {height + HEIGHT // 2}"
        yield f'<path class="arrow{critical}" d="{start}H{half}V{top + HEIGHT // 2}H{left}"/>'


def _text(text: str, most: int | None = None) -> str:
    shown = plain(text)
    return escape(shown if most is None else shorten(shown, most))
