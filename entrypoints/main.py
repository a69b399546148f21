"""The `herdbook` program: a hook is served before anything heavy is imported."""

import sys


def main() -> int:
    """Run one command and give its exit code."""
    if len(sys.argv) > 2 and sys.argv[1] == "hook" and sys.argv[2][:1] != "-":  # noqa: PLR2004 - an event is named
        from herdbook.entrypoints.hooks import hook  # noqa: PLC0415

        return hook.main(sys.argv[2:])
    from herdbook.entrypoints.cli import run_command  # noqa: PLC0415

    # To some hosts an exit code says that the agent must not stop; a hook only ever answers.
    is_hook = "--hook-json" in sys.argv[2:]
    try:
        code = run_command.main()
    except SystemExit:
        if not is_hook:
            raise
        return 0
    return 0 if is_hook else code
