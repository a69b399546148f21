"""What a model gave, as the parameters of an operation.

A text is taken as it is: `-` reads nothing here, and no parameter opens a file.
"""

import re
from collections.abc import Mapping
from typing import Any

from herdbook.domain.errors import InvalidValue
from herdbook.domain.values import INTEGERS
from herdbook.entrypoints.cli.parser import as_duration, parameters_of
from herdbook.entrypoints.mcp.tool import Tool, operation_of, shown_parameters
from herdbook.entrypoints.operations.model import Parameter

_UNFIT = re.compile("[\0\ud800-\udfff]")
_FLAGS = {"true": True, "false": False}


def values_of(tool: Tool, given: Mapping[str, Any]) -> dict[str, Any]:
    """Every parameter of the operation by the table's name: what was given, else its default.

    Raises InvalidValue with the name that the model used.
    """
    shown = shown_parameters(tool)
    for name in given:
        if name not in shown:
            known = ", ".join(shown)
            raise InvalidValue(name, f"is no parameter of {tool.name}; it takes {known}")
    values = {each.name: _default(each) for each in parameters_of(operation_of(tool))}
    for name, (each, row) in shown.items():
        value = given.get(name)
        if value is not None:
            values[row.name] = _converted(name, row, value)
        elif each.required or row.required:
            raise InvalidValue(name, f"is needed: {each.help}")
    return values


def _default(parameter: Parameter) -> Any:
    if parameter.kind == "flag":
        return False
    if parameter.kind == "duration" and parameter.default is not None:
        return as_duration(parameter.name, str(parameter.default))
    return parameter.default


def _converted(name: str, parameter: Parameter, value: Any) -> Any:
    """A value of the parameter's type; a number or a truth value may be given as text."""
    match parameter.kind:
        case "number":
            return _number(name, value)
        case "flag" | "yesno":
            found = _FLAGS.get(value.lower(), value) if isinstance(value, str) else value
            if not isinstance(found, bool):
                raise InvalidValue(name, f"must be true or false, is {value!r}")
            return found
    if not isinstance(value, str):
        raise InvalidValue(name, f"must be text, not {type(value).__name__}")
    if _UNFIT.search(value):
        raise InvalidValue(name, "may hold neither NUL nor half a surrogate pair")
    if parameter.choices and value not in parameter.choices:
        raise InvalidValue(name, f"{value!r} is none of {', '.join(parameter.choices)}")
    return as_duration(name, value) if parameter.kind == "duration" else value


def _number(name: str, value: Any) -> int:
    if isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,18}", value):
        return int(value)
    if not isinstance(value, int) or isinstance(value, bool) or value not in INTEGERS:
        raise InvalidValue(name, f"must be a whole number of at most 64 bits, is {value!r:.40}")
    return value
