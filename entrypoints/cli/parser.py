"""Command lines, parsed into the arguments of an operation."""

import argparse
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

from herdbook.domain.errors import InvalidValue
from herdbook.entrypoints.operations.model import (
    Operation,
    Parameter,
    option_name,
    parameters_of,
)
from herdbook.entrypoints.operations.parameter_converter import Wire, arguments_of, convert_all
from herdbook.entrypoints.operations.registry import OPERATIONS

PLACES = ("store", "work", "checkpoints", "record")
SYNONYMS = {
    "epic": "initiative",
    "comment": "review",
    "complete": "done",
    "depends-on": "after",
    "depend": "after",
    "undepend": "not-after",
}
"""Words that people and agents bring along from other tools; no command uses them itself."""


EVERYWHERE = (
    "everywhere: --agent NAME, who acts (default: HERDBOOK_AGENT, the session's agent, you); "
    "-C FOLDER,\nas if called from there; --store, --work, --checkpoints or --record URL, for "
    "another location\n(docs/locations.md); --full or --fields A,B, for more or other fields in "
    "JSON"
)


class ParsedCommand(NamedTuple):
    """What a command line asks for: where, how to answer, and what the code is called with."""

    folder: str
    places: dict[str, str | None]
    as_json: bool
    arguments: dict[str, Any]
    full: bool = False
    fields: tuple[str, ...] = ()
    agent: str | None = None


def find_operation(words: Sequence[str]) -> tuple[Operation | None, list[str]]:
    """The operation that the first words name, and the rest of the words."""
    if list(words[:1]) == ["-C"]:  # as git has it, before the command
        words = [*words[2:], *words[:2]]
    operation, rest = _find_named(words)
    known = [*(SYNONYMS.get(word, word) for word in words[:2]), *words[2:]]
    return (operation, rest) if operation or known == list(words) else _find_named(known)


def _find_named(words: Sequence[str]) -> tuple[Operation | None, list[str]]:
    first = [word for word in words[:2] if not word.startswith("-")]
    for operation in OPERATIONS:
        if tuple(first[: len(operation.words)]) == operation.words:
            return operation, list(words[len(operation.words) :])
    for operation in OPERATIONS:
        if first[:1] == [operation.alias]:
            return operation, list(words[1:])
    return None, list(words)


def parse(operation: Operation, words: Sequence[str]) -> ParsedCommand:
    """Read the words after a command.

    Raises InvalidValue for a value that does not fit its parameter, and for an option of a field
    that other commands write, for unknown options and for missing ones.
    """
    parameters = parameters_of(operation)
    parser = argument_parser(operation, parameters)
    found, unknown = parser.parse_known_args(words)
    if unknown:
        _refuse_guarded(operation, unknown)
        parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    given: dict[str, Any] = vars(found)
    values, problems = convert_all(parameters, given, SHELL)
    if problems:
        raise problems[0]
    return ParsedCommand(
        given["directory"] or ".",
        {key: given[f"place_{key}"] for key in PLACES},
        given["as_json"] or given["full"] or given["fields"] is not None,
        arguments_of(operation, parameters, values),
        given["full"],
        tuple(each.strip() for each in (given["fields"] or "").split(",") if each.strip()),
        given.get("acting_agent"),
    )


def _refuse_guarded(operation: Operation, unknown: Sequence[str]) -> None:
    from herdbook.entrypoints.operations.parameters import reason_refused  # noqa: PLC0415 - rare

    for word in unknown:
        option = word.removeprefix("--").partition("=")[0]
        if word.startswith("--") and (reason := reason_refused(operation, option)):
            raise InvalidValue(option, reason)


def argument_parser(
    operation: Operation, parameters: Sequence[Parameter]
) -> argparse.ArgumentParser:
    """The parser for the words after a command, which also explains them."""
    made = _Parser(
        prog=f"herdbook {' '.join(operation.words)}",
        description=f"{operation.help[0].upper()}{operation.help[1:]}.",
        epilog=f"example: {operation.example}\n{EVERYWHERE}",
        # Without a width it would ask the terminal for one, in every command.
        formatter_class=lambda prog: argparse.RawDescriptionHelpFormatter(prog, width=100),
        allow_abbrev=False,
    )
    for parameter in parameters:
        _add(made, parameter)
    made.add_argument(
        "--json", dest="as_json", action="store_true", help="answer with JSON, for programs"
    )
    # Every command has these, so they are explained in one line at the end.
    made.add_argument("--full", action="store_true", help=argparse.SUPPRESS)
    made.add_argument("--fields", help=argparse.SUPPRESS)
    if not any(option_name(each) == "agent" and not each.positional for each in parameters):
        made.add_argument("--agent", dest="acting_agent", help=argparse.SUPPRESS)
    made.add_argument("-C", dest="directory", help=argparse.SUPPRESS)
    taken = {parameter.name for parameter in parameters}
    for key in PLACES:
        option = f"--{key}" if key not in taken else f"--in-{key}"
        made.add_argument(option, dest=f"place_{key}", help=argparse.SUPPRESS)
    return made


def command_help(operation: Operation) -> str:
    """The options of a command and its example."""
    return argument_parser(operation, parameters_of(operation)).format_help()


class _Parser(argparse.ArgumentParser):
    """Reports a wrong command line as InvalidValue: one sentence, or JSON with --json."""

    def error(self, message: str) -> NoReturn:
        """Raise InvalidValue with the message of argparse."""
        command = self.prog.removeprefix("herdbook ")
        raise InvalidValue(command, f"{message}; `{self.prog} --help` shows what it takes")


def _add(made: argparse.ArgumentParser, parameter: Parameter) -> None:
    option = f"--{option_name(parameter)}"
    if parameter.kind == "flag":
        made.add_argument(option, dest=parameter.name, action="store_true", help=parameter.help)
        return
    choices = tuple(SHELL.flags) if parameter.kind == "yesno" else parameter.choices
    metavar = f"{{{','.join(choices)}}}" if choices else option_name(parameter).upper()
    more: dict[str, Any] = {"help": parameter.help, "metavar": metavar}
    if parameter.many:
        more["nargs"] = "*" if parameter.positional and not parameter.required else "+"
        # Else it would be an empty list where nothing is given.
        more["default"] = argparse.SUPPRESS if more["nargs"] == "*" else None
        more["action"] = "extend"
    elif parameter.positional and not parameter.required:
        more["nargs"] = "?"
    if parameter.positional:
        made.add_argument(parameter.name, **more)
    else:
        # The name of the field stays an option where people have another word for it.
        names = dict.fromkeys((option, f"--{parameter.name.replace('_', '-')}"))
        short = [f"-{parameter.short}"] if parameter.short else []
        made.add_argument(
            *(names if parameter.field else [*short, option]),
            dest=parameter.name,
            required=parameter.required,
            **more,
        )


def read_input_bytes() -> bytes:
    """All of standard input."""
    return sys.stdin.buffer.read()


def read_input(name: str) -> str:
    """All of standard input, as the text of a parameter; InvalidValue if it is not UTF-8."""
    try:
        return read_input_bytes().decode().removesuffix("\n")
    except UnicodeDecodeError as error:
        raise InvalidValue(name, f"standard input is no UTF-8 text ({error.reason})") from None


SHELL = Wire(
    flags={"yes": True, "no": False},
    numbers_as_text=True,
    documents_as_text=True,
    paths=True,
    surrogates=True,
    read_input=read_input,
)
