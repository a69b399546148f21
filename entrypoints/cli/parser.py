"""What somebody typed, as the parameters of an operation."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from herdbook.domain.errors import InvalidValue
from herdbook.entrypoints.operations.model import Operation, Parameter
from herdbook.entrypoints.operations.registry import OPERATIONS

PLACES = ("store", "work", "checkpoints", "record")
STANDARD_INPUT = "-"
GROUPS = frozenset(each.words[0] for each in OPERATIONS if len(each.words) > 1)
"""The words that begin several commands: alone they ask which ones."""


class Call(NamedTuple):
    """An operation as it is to be called."""

    folder: str
    places: dict[str, str | None]
    as_json: bool
    arguments: dict[str, Any]


def named(words: Sequence[str]) -> tuple[Operation | None, list[str]]:
    """The operation that the first words name, and the rest of the words."""
    if list(words[:1]) == ["-C"]:  # as git has it, before the command
        words = [*words[2:], *words[:2]]
    first = [word for word in words[:2] if not word.startswith("-")]
    for operation in OPERATIONS:
        if tuple(first[: len(operation.words)]) == operation.words:
            return operation, list(words[len(operation.words) :])
    for operation in OPERATIONS:
        alone = len(words) == 1 and operation.alias in GROUPS
        if first[:1] == [operation.alias] and not alone:
            return operation, list(words[1:])
    return None, list(words)


def parsed(operation: Operation, words: Sequence[str]) -> Call:
    """Read the words behind a command; argparse ends the program where they make no sense."""
    parameters = parameters_of(operation)
    given = vars(parser(operation, parameters).parse_args(words))
    converted = {each.name: _converted(each, given[each.name]) for each in parameters}
    return Call(
        given["directory"] or ".",
        {key: given[f"place_{key}"] for key in PLACES},
        given["as_json"],
        arguments_of(operation, parameters, converted),
    )


def arguments_of(
    operation: Operation, parameters: Sequence[Parameter], converted: Mapping[str, Any]
) -> dict[str, Any]:
    """What the code of an operation is called with, from the value of each parameter."""
    arguments: dict[str, Any] = {}
    values: dict[str, Any] = {}
    for parameter in parameters:
        value = converted[parameter.name]
        if not parameter.field:
            arguments[parameter.name] = value
        elif value is not None:
            values[parameter.field] = value
    if operation.use_case:
        refers = {each.name: each.refers for each in parameters if each.refers}
        arguments = {
            "use_case": operation.use_case,
            "area": operation.area,
            "writes": not operation.reads,
            "refers": refers,
            "arguments": arguments,
        }
    if operation.entity:
        arguments["entity"] = operation.entity
        if any(parameter.field for parameter in parameters):
            arguments["values"] = values
    return arguments


def parameters_of(operation: Operation) -> tuple[Parameter, ...]:
    """All parameters of an operation, those that follow from its entity too."""
    if not operation.entity or operation.words[-1] not in ("add", "list", "set"):
        return operation.parameters
    from herdbook.entrypoints.operations import parameters  # noqa: PLC0415 - brings the dictionary

    return (*operation.parameters, *parameters.parameters_of(operation))


def parser(operation: Operation, parameters: Sequence[Parameter]) -> argparse.ArgumentParser:
    """What reads the words behind a command, and explains them."""
    made = argparse.ArgumentParser(
        prog=f"herdbook {' '.join(operation.words)}",
        description=f"{operation.help[0].upper()}{operation.help[1:]}.",
        epilog=f"example: {operation.example}",
        # Without a width it would ask the terminal for one, in every command.
        formatter_class=lambda prog: argparse.RawDescriptionHelpFormatter(prog, width=100),
        allow_abbrev=False,
    )
    for parameter in parameters:
        _add(made, parameter)
    made.add_argument(
        "--json", dest="as_json", action="store_true", help="answer with JSON, for programs"
    )
    common = made.add_argument_group("where things are")
    common.add_argument(
        "-C", dest="directory", metavar="FOLDER", help="as if called from that folder"
    )
    taken = {parameter.name for parameter in parameters}
    for key in PLACES:
        what = "every area" if key == "store" else f"the area {key}"
        common.add_argument(
            f"--{key}" if key not in taken else f"--in-{key}",
            dest=f"place_{key}",
            metavar="VALUE",
            help=f"a URL, path or scope for {what}",
        )
    return made


def _add(made: argparse.ArgumentParser, parameter: Parameter) -> None:
    option = f"--{shown(parameter)}"
    if parameter.kind == "flag":
        made.add_argument(option, dest=parameter.name, action="store_true", help=parameter.help)
        return
    choices = ("yes", "no") if parameter.kind == "yesno" else parameter.choices
    more: dict[str, Any] = {
        "choices": choices or None,
        "default": parameter.default,
        "help": parameter.help,
        "metavar": None if choices else shown(parameter).upper(),
    }
    if parameter.kind == "number":
        more["type"] = int
    if parameter.many:
        more["nargs"] = "+"
    elif parameter.positional and not parameter.required:
        more["nargs"] = "?"
    if parameter.positional:
        made.add_argument(parameter.name, **more)
    else:
        made.add_argument(option, dest=parameter.name, required=parameter.required, **more)


def shown(parameter: Parameter) -> str:
    """What a parameter is called on the command line: `phase` for `phase_id`."""
    name = parameter.name.removesuffix("_id") if parameter.refers else parameter.name
    return parameter.option or name.replace("_", "-")


def _converted(parameter: Parameter, value: Any) -> Any:
    if value is None or parameter.many or parameter.kind in ("flag", "number", "path"):
        return value
    if parameter.kind == "yesno":
        return value == "yes"
    if parameter.kind == "moment":
        return as_moment(parameter.name, value)
    if parameter.kind == "duration":
        return as_duration(parameter.name, value)
    if parameter.kind == "secret":
        return _secret(parameter.name, value)
    if value == STANDARD_INPUT:
        value = standard_input(parameter.name)
    return _document(parameter.name, value) if parameter.kind == "json" else value


def standard_bytes() -> bytes:
    """All of standard input, whatever it is."""
    return sys.stdin.buffer.read()


def standard_input(name: str) -> str:
    """All of standard input, as the text of a parameter."""
    try:
        return standard_bytes().decode().removesuffix("\n")
    except UnicodeDecodeError as error:
        raise InvalidValue(name, f"standard input is no UTF-8 text ({error.reason})") from None


def _secret(name: str, value: str) -> object:
    from herdbook.domain.secret import Secret  # noqa: PLC0415

    if value != STANDARD_INPUT:
        reason = "is taken from standard input only, with -, so that no list of commands keeps it"
        raise InvalidValue(name, reason)
    return Secret(standard_input(name))


def as_moment(name: str, value: str) -> object:
    """A time as somebody wrote it."""
    from datetime import datetime  # noqa: PLC0415

    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        raise InvalidValue(name, f"{value!r} is no time; write 2026-05-01T12:00Z") from None
    if moment.tzinfo is None:
        raise InvalidValue(name, f"{value!r} has no time zone; write Z behind it for UTC")
    return moment


def as_duration(name: str, value: str) -> object:
    """A length of time as somebody wrote it."""
    import re  # noqa: PLC0415
    from datetime import timedelta  # noqa: PLC0415

    match = re.fullmatch(r"(\d{1,9}(?:\.\d{1,6})?)\s*([smhd]?)", value.strip())
    if match is None:
        raise InvalidValue(name, f"{value!r} is no length of time; write 90s, 5m, 2h or 1d")
    seconds = {"": 1, "s": 1, "m": 60, "h": 3_600, "d": 86_400}[match[2]]
    return timedelta(seconds=float(match[1]) * seconds)


def _document(name: str, value: str) -> object:
    import json  # noqa: PLC0415

    try:
        return json.loads(value)
    except ValueError as error:
        raise InvalidValue(name, f"is not JSON: {error}") from None
