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
from herdbook.entrypoints.operations.serialize import to_data
from herdbook.entrypoints.operations.wire_converter import unstructure

FOLDER = "folder"
_FOLDER_HELP = "the absolute path you work in, if it is not where your client started"
DURATION: Schema = {"type": "string", "pattern": r"^\d+(\.\d+)?[smhd]?$"}
"""A duration as a model writes it; with a number alone it would have to guess the unit."""


def input_schema(tool: Tool) -> Schema:
    """The schema of a tool's arguments."""
    shown = tool_parameters(tool)
    required = [name for name, (each, row) in shown.items() if each.required or row.required]
    folder = {FOLDER: {"type": "string", "description": _FOLDER_HELP}} if tool.takes_folder else {}
    return {
        "type": "object",
        "properties": {
            **{
                name: {**_argument_schema(row), "description": each.help}
                for name, (each, row) in shown.items()
            },
            **folder,
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


def to_output(tool: Tool, answer: Any, *, full: bool = True) -> dict[str, Any]:
    """An answer as JSON data: lean, or with every field so that it fits the output schema."""
    if full:
        data: dict[str, Any] = unstructure({tool.answer_key: answer} if tool.answer_key else answer)
        return data
    lean: Any = to_data(answer, lean=True)
    return {tool.answer_key: lean} if tool.answer_key else lean
