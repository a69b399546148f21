"""Shell completion."""

from herdbook.entrypoints.operations.model import Operation, argument, rows_of

ROWS = rows_of(
    "completion",
    Operation(
        "completion",
        "print a shell completion script",
        "herdbook completion bash",
        (argument("shell", "the shell", choices=("bash", "zsh", "fish")),),
        local=True,
    ),
)
