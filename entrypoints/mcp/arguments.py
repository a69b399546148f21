"""Converts the arguments of a tool call into the parameters of an operation.

A text is taken as it is: `-` reads nothing here, and no parameter opens a file.
"""

from collections.abc import Mapping
from typing import Any

from herdbook.domain.errors import InvalidValue
from herdbook.entrypoints.mcp.tool import Tool, operation_of, tool_parameters
from herdbook.entrypoints.operations.model import parameters_of
from herdbook.entrypoints.operations.parameter_converter import MCP, convert_all


def values_of(tool: Tool, given: Mapping[str, Any]) -> dict[str, Any]:
    """All parameters of the operation by the table's names: the given value, else the default.

    Raises InvalidValue with the name that the model used.
    """
    shown = tool_parameters(tool)
    for name in given:
        if name not in shown:
            known = ", ".join(shown)
            raise InvalidValue(name, f"is no parameter of {tool.name}; it takes {known}")
    names = {row.name: name for name, (_, row) in shown.items()}
    own = {row.name: row for _, row in shown.values()}
    needed = {row.name for each, row in shown.values() if each.required or row.required}
    values, problems = convert_all(
        [
            own.get(row.name, row)._replace(required=row.name in needed)
            for row in parameters_of(operation_of(tool))
        ],
        {row: given.get(name) for row, name in names.items()},
        MCP,
        lambda parameter: names[parameter.name],
    )
    if problems:
        raise problems[0]
    return values
