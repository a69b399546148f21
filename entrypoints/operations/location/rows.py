"""Where things are, worktrees, stores as a whole."""

from herdbook.entrypoints.operations.model import Operation, Parameter, argument, flag

_AREA = Parameter(
    "area",
    "whose store it is about",
    choices=("work", "checkpoints", "record"),
    default="work",
)
_VALUE = "a store: a URL, a path (from the repository's root on), or the name of an area"

ROWS: tuple[Operation, ...] = (
    Operation(
        "where",
        "tell where each area is kept, and which rule decided it",
        "location.handlers:where",
        "location.views:where",
        "herdbook where --json",
    ),
    Operation(
        "config",
        "print the settings that count, and where each was made",
        "location.handlers:config",
        "location.views:config",
        "herdbook config",
    ),
    Operation(
        "trust",
        "trust this repository's settings file, or a store that came with it",
        "location.handlers:trust",
        "location.views:trust",
        "herdbook trust",
        (
            Parameter(
                "store", "a store to trust instead: an area, a path or a URL", positional=True
            ),
            flag("new", "the store is gone, and an empty one may take its place"),
            flag("revoke", "trust it no longer"),
        ),
        local=True,
    ),
    Operation(
        "status",
        "show who works on what, in all worktrees",
        "status.handlers:status",
        "status.views:status",
        "herdbook status --worktree feature-login",
        (
            Parameter("worktree", "only this worktree: its id, path or branch"),
            flag("all", "every other repository of yours as well"),
        ),
    ),
    Operation(
        "worktree.add",
        "make a git worktree that shares the repository's stores",
        "worktrees.handlers:add",
        "worktrees.views:add",
        "herdbook worktree add login --base main",
        (
            argument("name", "what to call it; also its branch, unless --branch says otherwise"),
            Parameter("branch", "the branch to check out, made if it is not there"),
            Parameter("base", "what a new branch starts from"),
            Parameter("path", "where to put it, instead of beside the repository"),
        ),
        local=True,
    ),
    Operation(
        "worktree.list",
        "list the worktrees of this repository",
        "worktrees.handlers:list_",
        "worktrees.views:list_",
        "herdbook worktree list",
        (flag("all", "also those that are gone but have a history"),),
    ),
    Operation(
        "worktree.remove",
        "take a worktree down; its history and its checkpoints stay",
        "worktrees.handlers:remove",
        "worktrees.views:remove",
        "herdbook worktree remove login",
        (
            argument("worktree", "its name, id, path or branch"),
            flag("force", "even with uncommitted changes or agents at work in it"),
        ),
        local=True,
    ),
    Operation(
        "worktree.prune",
        "let git forget worktrees whose folders are gone",
        "worktrees.handlers:prune",
        "worktrees.views:prune",
        "herdbook worktree prune",
        local=True,
    ),
    Operation(
        "sql",
        "run one read-only query over a store",
        "sql.handlers:sql",
        "sql.views:sql",
        'herdbook sql "SELECT status, count(*) FROM tasks GROUP BY status"',
        (
            argument("query", "the query; - reads it from standard input"),
            _AREA,
            Parameter(
                "format", "how to print it", choices=("table", "csv", "json"), default="table"
            ),
            Parameter("limit", "print at most so many rows", kind="number", default=10_000),
        ),
        local=True,
    ),
    Operation(
        "shell",
        "open the engine's own SQL prompt on a store",
        "sql.handlers:shell",
        "sql.views:shell",
        "herdbook shell --area record",
        (_AREA, flag("write", "let it change the store, past the journal")),
        local=True,
    ),
    Operation(
        "copy",
        "copy a store with its journal to another place, on any engine",
        "stores.handlers:copy",
        "stores.views:copy",
        "herdbook copy work duckdb:///tmp/work.duckdb",
        (argument("source", _VALUE), argument("target", _VALUE)),
        local=True,
    ),
    Operation(
        "merge",
        "add to a store what another one has and it lacks",
        "stores.handlers:merge",
        "stores.views:merge",
        "herdbook merge ~/old/record.lmdb record",
        (argument("source", _VALUE), argument("target", _VALUE)),
        local=True,
    ),
    Operation(
        "check",
        "read everything in the stores and tell what does not fit",
        "stores.handlers:check",
        "stores.views:check",
        "herdbook check --repair",
        (
            Parameter("area", "only this area", choices=("work", "checkpoints", "record")),
            flag("repair", "rebuild what can be derived from the rest"),
        ),
    ),
    Operation(
        "completion",
        "print what makes a shell complete these commands",
        "completion.handlers:script",
        "completion.views:script",
        "herdbook completion bash",
        (
            Parameter(
                "shell",
                "which shell",
                positional=True,
                required=True,
                choices=("bash", "zsh", "fish"),
            ),
        ),
        local=True,
    ),
)
