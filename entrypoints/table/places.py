"""Where things are, worktrees, stores as a whole."""

from herdbook.entrypoints.operation import Operation, Parameter, argument, flag

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
        "herdbook.entrypoints.commands.places:where",
        "herdbook.entrypoints.screens.places:where",
        "herdbook where --json",
    ),
    Operation(
        "config",
        "print the settings that count, and where each was made",
        "herdbook.entrypoints.commands.places:config",
        "herdbook.entrypoints.screens.places:config",
        "herdbook config",
    ),
    Operation(
        "trust",
        "trust this repository's settings file, or a store that came with it",
        "herdbook.entrypoints.commands.places:trust",
        "herdbook.entrypoints.screens.places:trust",
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
        "herdbook.entrypoints.commands.status:status",
        "herdbook.entrypoints.screens.status:status",
        "herdbook status --worktree feature-login",
        (
            Parameter("worktree", "only this worktree: its id, path or branch"),
            flag("all", "every other repository of yours as well"),
        ),
    ),
    Operation(
        "worktree.add",
        "make a git worktree that shares the repository's stores",
        "herdbook.entrypoints.commands.worktrees:add",
        "herdbook.entrypoints.screens.worktrees:add",
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
        "herdbook.entrypoints.commands.worktrees:list_",
        "herdbook.entrypoints.screens.worktrees:list_",
        "herdbook worktree list",
        (flag("all", "also those that are gone but have a history"),),
    ),
    Operation(
        "worktree.remove",
        "take a worktree down; its history and its checkpoints stay",
        "herdbook.entrypoints.commands.worktrees:remove",
        "herdbook.entrypoints.screens.worktrees:remove",
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
        "herdbook.entrypoints.commands.worktrees:prune",
        "herdbook.entrypoints.screens.worktrees:prune",
        "herdbook worktree prune",
        local=True,
    ),
    Operation(
        "sql",
        "run one read-only query over a store",
        "herdbook.entrypoints.commands.asking:sql",
        "herdbook.entrypoints.screens.asking:sql",
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
        "herdbook.entrypoints.commands.asking:shell",
        "herdbook.entrypoints.screens.asking:shell",
        "herdbook shell --area record",
        (_AREA, flag("write", "let it change the store, past the journal")),
        local=True,
    ),
    Operation(
        "copy",
        "copy a store with its journal to another place, on any engine",
        "herdbook.entrypoints.commands.moving:copy",
        "herdbook.entrypoints.screens.moving:copy",
        "herdbook copy work duckdb:///tmp/work.duckdb",
        (argument("source", _VALUE), argument("target", _VALUE)),
        local=True,
    ),
    Operation(
        "merge",
        "add to a store what another one has and it lacks",
        "herdbook.entrypoints.commands.moving:merge",
        "herdbook.entrypoints.screens.moving:merge",
        "herdbook merge ~/old/record.lmdb record",
        (argument("source", _VALUE), argument("target", _VALUE)),
        local=True,
    ),
    Operation(
        "check",
        "read everything in the stores and tell what does not fit",
        "herdbook.entrypoints.commands.moving:check",
        "herdbook.entrypoints.screens.moving:check",
        "herdbook check --repair",
        (
            Parameter("area", "only this area", choices=("work", "checkpoints", "record")),
            flag("repair", "rebuild what can be derived from the rest"),
        ),
    ),
    Operation(
        "completion",
        "print what makes a shell complete these commands",
        "herdbook.entrypoints.commands.completion:script",
        "herdbook.entrypoints.screens.completion:script",
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
