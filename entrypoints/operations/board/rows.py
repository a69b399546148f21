"""The plan as a board and as a graph."""

from herdbook.entrypoints.operations.model import (
    AT,
    Operation,
    Parameter,
    flag,
    id_option,
    rows_of,
    use_case_operation,
)

ROWS = rows_of(
    "board",
    Operation(
        "board",
        "show initiatives, phases and tasks by state, and who holds what",
        "herdbook board --watch",
        (
            Parameter("initiative", "only this one: its id or a unique prefix of it, or its name"),
            Parameter("label", "only tasks with this label"),
            Parameter(
                "limit", "how many tasks to show of one phase and state", kind="number", default=10
            ),
            flag(
                "watch", "keep running and show every change; on a terminal, with keys: q ends it"
            ),
            AT,
        ),
        live="board.views:live",
    ),
    Operation(
        "plan",
        "draw the unfinished tasks as a tree, in waves that can run in parallel",
        "herdbook plan --initiative a1b2 --mermaid",
        (
            Parameter("initiative", "only this one: its id or a unique prefix of it"),
            Parameter("phase", "only this one: its id or a unique prefix of it"),
            flag("mermaid", "as a Mermaid flowchart, for documents"),
            flag("dot", "as a DOT graph, for Graphviz"),
            flag("svg", "as a picture: an SVG file that loads nothing"),
            flag("layout", "with the places of the tasks in a drawing, for programs that draw it"),
            Parameter("agents", "tell in which order so many agents would pick it up", "number"),
            AT,
        ),
        code="board.plan_graph:plan",
        view="board.plan_tree:plan",
    ),
    use_case_operation(
        "progress",
        "show how far each phase is, how fast tasks get done, and when the rest may be",
        "plan.progress:measure_progress",
        id_option(
            "initiative_id",
            "initiatives",
            "only this one: its id or a unique prefix of it, or its name",
        ),
        example="progress --initiative a1b2",
        reads=True,
        view="board.progress_view:progress",
    ),
    Operation(
        "lanes",
        "show who held which task from when to when, with questions and commits",
        "herdbook lanes --from 2026-05-01T08:00Z --group phase",
        (
            Parameter(
                "from_",
                "where the window begins; default: eight hours before its end",
                kind="moment",
                option="from",
            ),
            Parameter("to", "where it ends; default: now", kind="moment"),
            Parameter(
                "group",
                "what a lane is of",
                choices=("agent", "worktree", "phase"),
                default="agent",
            ),
            Parameter("limit", "how many lanes to show", kind="number", default=100),
            AT,
        ),
        code="board.lanes:lanes",
        view="board.lanes_view:lanes",
    ),
)
