"""Values of parameters: checked and converted once, for the command line, JSON-RPC and MCP.

The wires differ only in what they accept, which a `Wire` lists; the same mistake gets the same
reason on each of them. Commands wait for this module, so it imports nothing that takes time.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from herdbook.domain.errors import InvalidValue
from herdbook.entrypoints.operations.model import Operation, Parameter, json_name

STANDARD_INPUT = "-"
LARGEST = 2**63 - 1
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3_600, "d": 86_400}
_EXPECTED = {
    "moment": "a time, such as 2026-05-01T12:00Z",
    "duration": "a duration: 90s, 5m, 2h, or a number of seconds",
    "position": "the number of a journal entry, or a time such as 2026-05-01T12:00Z",
}
_MOST_DIGITS = 18


class Wire(NamedTuple):
    """What a wire accepts besides a value of the parameter's own JSON type.

    `flags` are texts for yes and no. Numbers may come as text, documents as the text of their JSON,
    durations as a number of seconds; paths may be given; texts may hold half a surrogate
    pair, as a path that is no UTF-8 does. With `read_input`, `-` stands for what that reads, and a
    secret is taken from nowhere else.
    """

    flags: Mapping[str, bool] = {}
    numbers_as_text: bool = False
    documents_as_text: bool = False
    seconds: bool = False
    paths: bool = False
    surrogates: bool = False
    read_input: Callable[[str], str] | None = None


RPC = Wire(seconds=True, surrogates=True)  # a message with half a pair never gets this far
MCP = Wire(flags={"true": True, "false": False}, numbers_as_text=True)
_TABLE = Wire(paths=True)
"""For the defaults of the table of operations."""


def convert_all(
    parameters: Sequence[Parameter],
    given: Mapping[str, Any],
    wire: Wire,
    name_of: Callable[[Parameter], str] = json_name,
) -> tuple[dict[str, Any], list[InvalidValue]]:
    """The value of each parameter by its name, and what is wrong with those that do not fit.

    A parameter that is not given, or given as None, has its default. Errors call it what `name_of`
    says.
    """
    values: dict[str, Any] = {}
    problems: list[InvalidValue] = []
    readers = [each for each in parameters if _reads_input(each, given.get(each.name), wire)]
    for parameter in parameters:
        value = given.get(parameter.name)
        if parameter in readers[1:]:
            reason = f"cannot be read from standard input too: {name_of(readers[0])} takes it all"
            problems.append(InvalidValue(name_of(parameter), reason))
            value = None
        elif value is None:
            value = default_of(parameter)
            if parameter.required:
                problems.append(InvalidValue(name_of(parameter), "is needed"))
        else:
            try:
                value = convert(parameter, value, wire, name_of(parameter))
            except InvalidValue as problem:
                problems.append(problem)
        values[parameter.name] = value
    return values, problems


def convert(parameter: Parameter, value: Any, wire: Wire, name: str) -> Any:
    """The value that the code of an operation takes; InvalidValue under this name if none fits."""
    if not parameter.many:
        return _convert_one(parameter, _read_input(parameter, value, wire, name), wire, name)
    if not isinstance(value, list) or not value:
        raise InvalidValue(name, "must be an array with something in it")
    return [_convert_one(parameter, each, wire, name) for each in value]


def default_of(parameter: Parameter) -> Any:
    """The value of a parameter that is not given."""
    if parameter.kind == "flag":
        return False
    if parameter.default is None:
        return None
    return convert(parameter, parameter.default, _TABLE, parameter.name)


def _reads_input(parameter: Parameter, value: Any, wire: Wire) -> bool:
    """Whether this value stands for what is on standard input."""
    if wire.read_input is None or parameter.many or value != STANDARD_INPUT:
        return False
    return parameter.kind in ("text", "texts", "json", "secret")


def _read_input(parameter: Parameter, value: Any, wire: Wire, name: str) -> Any:
    if wire.read_input is None:
        return value
    if _reads_input(parameter, value, wire):
        return wire.read_input(name)
    if parameter.kind == "secret":
        reason = "is taken from standard input only, with -, so that no list of commands keeps it"
        raise InvalidValue(name, reason)
    return value


def _convert_one(parameter: Parameter, value: Any, wire: Wire, name: str) -> Any:
    match parameter.kind:
        case "json" | "texts":
            parse_text = _parse_json if parameter.kind == "json" else _parse_texts
            return parse_text(name, value) if wire.documents_as_text else value
        case "flag" | "yesno":
            return _convert_flag(value, wire, name)
        case "number" | "fence":
            return _convert_number(parameter, value, wire, name)
        case "path" if not wire.paths:
            raise InvalidValue(name, "is a path, and no path is taken from here")
        case "position" | "duration":
            value = _number_as_text(parameter.kind, value, wire)
    if not isinstance(value, str):
        raise InvalidValue(name, f"must be {_EXPECTED.get(parameter.kind, 'a text')}")
    if "\0" in value:
        raise InvalidValue(name, "may not hold a NUL")
    if not wire.surrogates and _has_surrogates(value):
        raise InvalidValue(name, "may not hold half a surrogate pair")
    if parameter.choices and value not in parameter.choices:
        raise InvalidValue(name, f"must be one of {', '.join(parameter.choices)}")
    parse = _PARSERS.get(parameter.kind)
    return value if parse is None else parse(name, value)


def _number_as_text(kind: str, value: Any, wire: Wire) -> Any:
    if kind == "position" and type(value) is int:
        return str(value)
    if kind == "duration" and wire.seconds and type(value) in (int, float):
        return f"{value:f}"
    return value


def _convert_flag(value: Any, wire: Wire, name: str) -> bool:
    found = wire.flags.get(value.lower()) if isinstance(value, str) else value
    if not isinstance(found, bool):
        raise InvalidValue(name, f"must be {' or '.join(wire.flags or MCP.flags)}")
    return found


def _convert_number(parameter: Parameter, value: Any, wire: Wire, name: str) -> object:
    if parameter.kind == "fence" and isinstance(value, str) and not value.lstrip("-").isdecimal():
        return _parse_stamp(name, value)
    if wire.numbers_as_text and isinstance(value, str):
        try:
            value = int(value)
        except ValueError:
            raise InvalidValue(name, "must be a whole number") from None
    if type(value) is not int:
        raise InvalidValue(name, "must be a whole number")
    least = 1 if parameter.name == "limit" else -LARGEST - 1
    if not least <= value <= LARGEST:
        raise InvalidValue(name, f"must be a whole number from {least} to {LARGEST}")
    return value


def _has_surrogates(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _parse_stamp(name: str, text: str) -> object:
    """The stamp of a claim, in the place of its number."""
    from herdbook.domain.clock import Stamp  # noqa: PLC0415 - few give one

    try:
        return Stamp.parse(text)
    except InvalidValue:
        reason = "must be a whole number or the stamp of a claim"
        raise InvalidValue(name, reason) from None


def parse_moment(name: str, text: str) -> object:
    """A time from text that has its time zone."""
    from datetime import datetime  # noqa: PLC0415

    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidValue(name, f"{text!r} is not a time; write 2026-05-01T12:00Z") from None
    if moment.tzinfo is None:
        raise InvalidValue(name, f"{text!r} has no time zone; write Z after it for UTC")
    return moment


def parse_position(name: str, text: str) -> object:
    """A position in the journal from text: the number of an entry, or a time in UTC."""
    from datetime import UTC, datetime  # noqa: PLC0415

    number = text.removeprefix("#")
    if number.isascii() and number.isdigit():
        if len(number) > _MOST_DIGITS:
            raise InvalidValue(
                name, f"no journal has an entry with a number of {len(number)} digits"
            )
        return int(number)
    if "-" not in text:
        raise InvalidValue(name, f"{text!r} is not {_EXPECTED['position']}")
    moment = parse_moment(name, text)
    assert isinstance(moment, datetime)  # noqa: S101 - it parses nothing else
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise InvalidValue(name, f"{text!r} is beyond the calendar") from None


def parse_duration(name: str, text: str) -> object:
    """A duration from text: a number and a unit, or a number of seconds."""
    import re  # noqa: PLC0415
    from datetime import timedelta  # noqa: PLC0415

    match = re.fullmatch(r"(\d{1,9}(?:\.\d{1,6})?)\s*([smhd]?)", text.strip())
    if match is None:
        raise InvalidValue(name, f"{text!r} is not a duration; write 90s, 5m, 2h or 1d")
    return timedelta(seconds=float(match[1]) * _SECONDS[match[2]])


def _secret(name: str, text: str) -> object:
    from herdbook.domain.secret import Secret  # noqa: PLC0415

    if not text.strip():
        raise InvalidValue(name, "is empty; nothing was stored")
    return Secret(text)


def _parse_json(name: str, text: str) -> object:
    import json  # noqa: PLC0415

    try:
        return json.loads(text)
    except ValueError as error:
        raise InvalidValue(name, f"is not JSON: {error}") from None


def _parse_texts(name: str, text: str) -> object:
    """One text as a list of it; what looks like JSON is parsed as that."""
    return _parse_json(name, text) if text.lstrip()[:1] in ("[", "{") else [text]


_PARSERS: Mapping[str, Callable[[str, str], object]] = {
    "moment": parse_moment,
    "position": parse_position,
    "duration": parse_duration,
    "secret": _secret,
}


def arguments_of(
    operation: Operation, parameters: Sequence[Parameter], values: Mapping[str, Any]
) -> dict[str, Any]:
    """What the code of an operation is called with, from the value of each parameter."""
    arguments = {each.name: values[each.name] for each in parameters if not each.field}
    if operation.use_case:
        return {"operation": operation, "arguments": arguments}
    if operation.entity:
        fields = {each.field: values[each.name] for each in parameters if each.field}
        arguments["entity"] = operation.entity
        if fields:
            given = {name: value for name, value in fields.items() if value is not None}
            arguments["values"] = given
    return arguments
