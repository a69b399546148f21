"""The plan as a board and as a graph."""

from herdbook.entrypoints.operations.model import Operation, Parameter, flag

ROWS: tuple[Operation, ...] = (
    Operation(
        "board",
        "show initiatives, phases and tasks by state, and who holds what",
        "board.handlers:board",
        "board.views:board",
        "herdbook board --watch",
        (
            Parameter("initiative", "only this one: its id or a unique prefix of it"),
            flag("watch", "keep running and show every change; Ctrl-C ends it"),
        ),
        live="board.views:live",
    ),
    Operation(
        "plan",
        "draw the unfinished tasks as a tree, in waves that can run in parallel",
        "board.handlers:plan",
        "board.plan_tree:plan",
        "herdbook plan --initiative a1b2 --mermaid",
        (
            Parameter("initiative", "only this one: its id or a unique prefix of it"),
            Parameter("phase", "only this one: its id or a unique prefix of it"),
            flag("mermaid", "as a Mermaid flowchart, for documents"),
            flag("dot", "as a DOT graph, for Graphviz"),
        ),
    ),
)
