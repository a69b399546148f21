"""Checkpoints of workflows: list, show, compare, copy, prune, remove and import."""

from herdbook.entrypoints.operations.model import Operation, Parameter, argument, flag, rows_of

_THREAD = argument("thread", "the full id of the thread")
_THREADS = _THREAD._replace(name="threads", help="the full ids of the threads", many=True)
_CHECKPOINT = argument(
    "checkpoint", "its id or a unique prefix; default: the newest", required=False
)
_NAMESPACE = Parameter("namespace", "the checkpoint_ns of a subgraph; '' is the graph itself")
_PREVIEW = flag("preview", "show what it would remove, and change nothing")
_LIMIT = Parameter("limit", "the maximum number of rows", kind="number", default=100)

ROWS = rows_of(
    "checkpoints",
    Operation(
        "checkpoint.threads",
        "list the threads of this worktree's workflows, with their sizes",
        "herdbook checkpoint threads --limit 20",
        (_LIMIT, Parameter("after", "start after the thread with this id")),
    ),
    Operation(
        "checkpoint.list",
        "list the checkpoints of a thread, newest first",
        "herdbook checkpoint list issue-17",
        (_THREAD, _NAMESPACE, _LIMIT, Parameter("after", "start after the row with this id")),
    ),
    Operation(
        "checkpoint.show",
        "show a checkpoint with its values, and the config that resumes a graph from it",
        "herdbook checkpoint show issue-17 --channel messages",
        (_THREAD, _CHECKPOINT, _NAMESPACE, Parameter("channel", "show only this channel, in full")),
    ),
    Operation(
        "checkpoint.diff",
        "compare two checkpoints, or one with its parent",
        "herdbook checkpoint diff issue-17",
        (
            _THREAD,
            _CHECKPOINT,
            _CHECKPOINT._replace(
                name="other", help="the checkpoint to compare with; default: its parent"
            ),
            _NAMESPACE,
            _LIMIT._replace(help="the maximum number of differences per value"),
        ),
    ),
    Operation(
        "checkpoint.copy",
        "copy a thread with all its checkpoints",
        "herdbook checkpoint copy issue-17 issue-17-again",
        (
            _THREAD._replace(name="source"),
            argument("target", "the id of the target thread; what it already has is kept"),
        ),
    ),
    Operation(
        "checkpoint.prune",
        "keep only the newest checkpoint of each namespace, and what it needs",
        "herdbook checkpoint prune issue-17 --preview",
        (_THREADS, _PREVIEW),
    ),
    Operation(
        "checkpoint.rm",
        "remove threads with all their checkpoints",
        "herdbook checkpoint rm issue-17 --preview",
        (_THREADS, _PREVIEW),
    ),
    Operation(
        "import.langgraph-sqlite",
        "import the checkpoints of a LangGraph SqliteSaver database",
        "herdbook import langgraph-sqlite ~/.agentos/issue_workflow.db",
        (argument("file", "the database", kind="path"),),
        code="checkpoints.import_langgraph:read",
        view="checkpoints.views:import_report",
        local=True,
    ),
)
