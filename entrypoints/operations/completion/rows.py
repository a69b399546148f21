"""Shell completion."""

from herdbook.entrypoints.operations.model import Operation, Parameter

ROWS: tuple[Operation, ...] = (
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
