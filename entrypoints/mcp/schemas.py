"""What a tool takes and gives, as JSON Schema; always an object, as the protocol wants it."""

from typing import Any

from herdbook.entrypoints.mcp.tool import Tool, operation_of, shown_parameters
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
"""How a model tells a time span; a number alone would leave it to guess the unit."""


def input_schema(tool: Tool) -> Schema:
    """What a model may give, and must."""
    shown = shown_parameters(tool)
    required = [name for name, (each, row) in shown.items() if each.required or row.required]
    return {
        "type": "object",
        "properties": {
            name: {**_parameter(row), "description": each.help}
            for name, (each, row) in shown.items()
        },
        "additionalProperties": False,
        **({"required": required} if required else {}),
    }


def _parameter(row: Parameter) -> Schema:
    schema = parameter_schema(row)
    return {**schema, **DURATION} if row.kind == "duration" else schema


def output_schema(tool: Tool) -> Schema:
    """What a model gets."""
    answer = answer_schema(operation_of(tool), whole_row_schema)
    return object_schema({tool.under: answer}) if tool.under else answer


def shaped(tool: Tool, answer: Any) -> dict[str, Any]:
    """An answer as the schema says."""
    whole: dict[str, Any] = unstructure({tool.under: answer} if tool.under else answer)
    return whole
