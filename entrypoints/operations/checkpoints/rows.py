"""Checkpoints of workflows: to look at, to tidy up, to take over from elsewhere."""

from herdbook.entrypoints.operations.model import Operation, Parameter, argument, flag

_THREAD = argument("thread", "the thread's whole id")
_THREADS = _THREAD._replace(name="threads", help="the threads' whole ids", many=True)
_CHECKPOINT = Parameter(
    "checkpoint", "its id, or the beginning of it; by default the newest", positional=True
)
_NAMESPACE = Parameter(
    "namespace", "of this sub-graph, by its checkpoint_ns; '' is the graph's own"
)
_PREVIEW = flag("preview", "only tell what it would remove and free")
_LIMIT = Parameter("limit", "at most so many", kind="number", default=100)

ROWS: tuple[Operation, ...] = (
    Operation(
        "checkpoint.threads",
        "list the threads of this worktree's workflows, with their sizes",
        "checkpoints.handlers:threads",
        "checkpoints.views:threads",
        "herdbook checkpoint threads --limit 20",
        (_LIMIT, Parameter("after", "from behind the thread with this id on")),
    ),
    Operation(
        "checkpoint.list",
        "list the checkpoints of a thread, the newest first",
        "checkpoints.handlers:list_",
        "checkpoints.views:list_",
        "herdbook checkpoint list issue-17",
        (_THREAD, _NAMESPACE, _LIMIT, Parameter("after", "from behind the one with this id on")),
    ),
    Operation(
        "checkpoint.show",
        "show a checkpoint with its values, and the config that takes a graph back to it",
        "checkpoints.handlers:show",
        "checkpoints.views:show",
        "herdbook checkpoint show issue-17 --channel messages",
        (_THREAD, _CHECKPOINT, _NAMESPACE, Parameter("channel", "only this value, and all of it")),
    ),
    Operation(
        "checkpoint.diff",
        "show what two checkpoints differ in: two named, or one and the one it came from",
        "checkpoints.handlers:diff",
        "checkpoints.views:diff",
        "herdbook checkpoint diff issue-17",
        (
            _THREAD,
            _CHECKPOINT,
            _CHECKPOINT._replace(
                name="other", help="the one to compare it with; by default the one it came from"
            ),
            _NAMESPACE,
            _LIMIT._replace(help="at most so many differences of each value"),
        ),
    ),
    Operation(
        "checkpoint.copy",
        "copy a thread with all its checkpoints to another one",
        "checkpoints.handlers:copy",
        "checkpoints.views:copy",
        "herdbook checkpoint copy issue-17 issue-17-again",
        (
            _THREAD._replace(name="source"),
            argument("target", "the other thread's id; what it has already stays"),
        ),
    ),
    Operation(
        "checkpoint.prune",
        "keep only the newest checkpoint of each namespace of threads, and what it rests on",
        "checkpoints.handlers:prune",
        "checkpoints.views:prune",
        "herdbook checkpoint prune issue-17 --preview",
        (_THREADS, _PREVIEW),
    ),
    Operation(
        "checkpoint.rm",
        "remove threads with all their checkpoints",
        "checkpoints.handlers:rm",
        "checkpoints.views:rm",
        "herdbook checkpoint rm issue-17 --preview",
        (_THREADS, _PREVIEW),
    ),
    Operation(
        "import.langgraph-sqlite",
        "take over the checkpoints that LangGraph's SqliteSaver has kept in a file",
        "checkpoints.import_langgraph:read",
        "checkpoints.views:imported",
        "herdbook import langgraph-sqlite ~/.agentos/issue_workflow.db",
        (Parameter("file", "the database", kind="path", positional=True, required=True),),
        local=True,
    ),
)
