"""Where things are, worktrees, stores as a whole."""

from herdbook.entrypoints.operations.model import Operation, Parameter, argument, flag

_AREA = Parameter(
    "area",
    "the area whose store is meant",
    choices=("work", "checkpoints", "record"),
    default="work",
)
_VALUE = "a store: a URL, a path (relative to the repository's root), or the name of an area"

ROWS: tuple[Operation, ...] = (
    Operation(
        "where",
        "show where each store is, and which rule decided it",
        "location.handlers:where",
        "location.views:where",
        "herdbook where --json",
    ),
    Operation(
        "config",
        "show the effective settings and where each one is set",
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
            flag("new", "accept that the store is gone, and start with an empty one"),
            flag("revoke", "revoke the trust"),
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
            flag("all", "include your other repositories"),
        ),
    ),
    Operation(
        "worktree.add",
        "create a git worktree that shares the repository's stores",
        "worktrees.handlers:add",
        "worktrees.views:add",
        "herdbook worktree add login --base main",
        (
            argument("name", "the name of its folder, and of its branch unless --branch is given"),
            Parameter("branch", "the branch to check out; created if it does not exist"),
            Parameter("base", "the commit or branch that a new branch starts from"),
            Parameter("path", "its folder; default: beside the repository"),
        ),
        local=True,
    ),
    Operation(
        "worktree.list",
        "list the worktrees of this repository",
        "worktrees.handlers:list_",
        "worktrees.views:list_",
        "herdbook worktree list",
        (flag("all", "include removed worktrees that have a history"),),
    ),
    Operation(
        "worktree.remove",
        "remove a worktree; its history and checkpoints are kept",
        "worktrees.handlers:remove",
        "worktrees.views:remove",
        "herdbook worktree remove login",
        (
            argument("worktree", "its name, id, path or branch"),
            flag("force", "remove it even with uncommitted changes or running agents"),
        ),
        local=True,
    ),
    Operation(
        "worktree.prune",
        "remove git's entries of worktrees whose folders are gone",
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
                "format", "the output format", choices=("table", "csv", "json"), default="table"
            ),
            Parameter("limit", "the maximum number of rows", kind="number", default=10_000),
        ),
        local=True,
    ),
    Operation(
        "shell",
        "open the engine's SQL shell on a store",
        "sql.handlers:shell",
        "sql.views:shell",
        "herdbook shell --area record",
        (_AREA, flag("write", "allow changes to the store, which the journal will not contain")),
        local=True,
    ),
    Operation(
        "copy",
        "copy a store with its journal to another place or engine",
        "stores.handlers:copy",
        "stores.views:copy",
        "herdbook copy work duckdb:///tmp/work.duckdb",
        (argument("source", _VALUE), argument("target", _VALUE)),
        local=True,
    ),
    Operation(
        "merge",
        "copy missing rows from one store into another",
        "stores.handlers:merge",
        "stores.views:merge",
        "herdbook merge ~/old/record.lmdb record",
        (argument("source", _VALUE), argument("target", _VALUE)),
        local=True,
    ),
    Operation(
        "check",
        "verify the integrity of the stores",
        "stores.handlers:check",
        "stores.views:check",
        "herdbook check --repair",
        (
            Parameter("area", "only this area", choices=("work", "checkpoints", "record")),
            flag("repair", "rebuild what can be computed from other rows"),
        ),
    ),
    Operation(
        "completion",
        "print a shell completion script",
        "completion.handlers:script",
        "completion.views:script",
        "herdbook completion bash",
        (
            Parameter(
                "shell",
                "the shell",
                positional=True,
                required=True,
                choices=("bash", "zsh", "fish"),
            ),
        ),
        local=True,
    ),
)
