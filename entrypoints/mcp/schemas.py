"""JSON Schemas of a tool's arguments and answer; always objects, as the protocol demands."""

from typing import Any

from herdbook.entrypoints.mcp.tool import Tool, operation_of, tool_parameters
from herdbook.entrypoints.operations.json_schema import (
    Schema,
    answer_schema,
    object_schema,
    parameter_schema,
    whole_row_schema,
)
from herdbook.entrypoints.operations.model import Parameter
from herdbook.entrypoints.operations.wire_converter import unstructure

DURATION: Schema = {"type": "string", "pattern": r"^\s*\d{1,9}(\.\d{1,6})?\s*[smhd]?\s*$"}
"""A duration as a model writes it; with a number alone it would have to guess the unit."""


def input_schema(tool: Tool) -> Schema:
    """The schema of a tool's arguments."""
    shown = tool_parameters(tool)
    required = [name for name, (each, row) in shown.items() if each.required or row.required]
    return {
        "type": "object",
        "properties": {
            name: {**_argument_schema(row), "description": each.help}
            for name, (each, row) in shown.items()
        },
        "additionalProperties": False,
        **({"required": required} if required else {}),
    }


def _argument_schema(row: Parameter) -> Schema:
    schema = parameter_schema(row)
    return {**schema, **DURATION} if row.kind == "duration" else schema


def output_schema(tool: Tool) -> Schema:
    """The schema of a tool's answer."""
    answer = answer_schema(operation_of(tool), whole_row_schema)
    return object_schema({tool.answer_key: answer}) if tool.answer_key else answer


def to_output(tool: Tool, answer: Any) -> dict[str, Any]:
    """An answer as JSON data that fits the output schema."""
    data: dict[str, Any] = unstructure({tool.answer_key: answer} if tool.answer_key else answer)
    return data
