"""The reference pages that `make docs` writes from the tables of operations and of errors."""

import sys

from herdbook.entrypoints.operations.error_table import ERRORS
from herdbook.entrypoints.operations.model import (
    Operation,
    Parameter,
    option_name,
    parameters_of,
)
from herdbook.entrypoints.operations.registry import OPERATIONS

HEAD = """\
# Commands

Generated from the table of operations by `make docs`. Every command also takes `--json` (one object
or array, or one object per line for commands that follow), `--agent NAME` for who acts (default:
`HERDBOOK_AGENT`, else the session's agent, else you), `-C FOLDER`, and `--store`, `--work`,
`--checkpoints`, `--record` for [other locations](locations.md). Ids may be shortened to a unique
prefix of four characters or more; initiatives, phases, tasks, projects and agents may be given by
their names where these are unique. `-` reads a text from standard input.

Other words for the same: `epic` for `initiative`, `comment` for `review`, `complete` for `done`,
`depends-on` or `depend` for `after`, `undepend` for `not-after`.

Exit codes: 0 done, 1 refused by a rule, 2 usage, 3 not found, 4 conflict or busy, 5 store
unavailable, 70 internal error, 130 interrupted.
"""

ERRORS_HEAD = """\
# Errors

Generated from the table of errors by `make docs`. The command line, [JSON-RPC](rpc.md), the
[tools for agents](mcp.md) and the Python client report the same errors; `--json` prints one as
`{"error": {"type", "message", …}}`, and the thousands of an RPC code are the exit code. The last
column is the advice that an agent gets from a tool, unless the tool has advice of its own.

| type | when | exit code | RPC code | HTTP status | advice for agents |
|---|---|---|---|---|---|\
"""


def command_reference() -> str:
    """Every command with its parameters and its example, group by group."""
    groups = dict.fromkeys(each.words[0] for each in OPERATIONS)
    parts = [HEAD]
    for group in groups:
        own = [each for each in OPERATIONS if each.words[0] == group]
        parts.append(f"## {group}\n")
        parts += [_command(each) for each in own]
    return "\n".join(parts)


def _command(operation: Operation) -> str:
    parameters = parameters_of(operation)
    places = " ".join(_placeholder(each) for each in parameters if each.positional)
    name = f"herdbook {' '.join(operation.words)} {places}".strip()
    alias = f" (also `herdbook {operation.alias}`)" if operation.alias else ""
    lines = [f"### `{name}`", f"{operation.help[0].upper()}{operation.help[1:]}{alias}.", ""]
    lines += [f"- `{_spelling(each)}`: {each.help}{_details(each)}" for each in parameters]
    lines += [*([""] if parameters else []), "```sh", operation.example, "```", ""]
    return "\n".join(lines)


def _placeholder(parameter: Parameter) -> str:
    name = option_name(parameter).upper() + ("…" if parameter.many else "")
    return name if parameter.required or parameter.many else f"[{name}]"


def _spelling(parameter: Parameter) -> str:
    if parameter.positional:
        return _placeholder(parameter)
    return f"--{option_name(parameter)}"


def _details(parameter: Parameter) -> str:
    said = []
    if parameter.choices:
        said.append(f"one of {', '.join(parameter.choices)}")
    if parameter.default is not None:
        said.append(f"by default {parameter.default}")
    if parameter.required and not parameter.positional:
        said.append("needed")
    return f" ({'; '.join(said)})" if said else ""


def error_reference() -> str:
    """Every class of errors with its codes and what an agent is told to do."""
    rows = [
        f"| `{error.__name__}` | {_first_sentence(error)} | {row.exit_code} | {row.code} "
        f"| {row.http_status} | {row.advice.replace('{tool}', 'the tool')} |"
        for error, row in ERRORS.items()
    ]
    return "\n".join([ERRORS_HEAD, *rows, ""])


def _first_sentence(error: type) -> str:
    return (error.__doc__ or "").partition("\n")[0].rstrip(".")


if __name__ == "__main__":
    print(error_reference() if sys.argv[1:] == ["errors"] else command_reference(), end="")
