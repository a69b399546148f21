"""What a tool takes and gives, as JSON Schema: from the table and from the dictionary."""

from typing import Any

from herdbook.entrypoints.mcp.tool import Answer, Tool, shown_parameters
from herdbook.entrypoints.operation import Parameter
from herdbook.ports.dictionary import DICTIONARY
from herdbook.ports.kinds import Column, Kind

Schema = dict[str, Any]

DURATION = r"^\s*\d{1,9}(\.\d{1,6})?\s*[smhd]?\s*$"
_TEXT: Schema = {"type": "string"}
_MOMENT: Schema = {"type": "string", "format": "date-time"}
_NUMBER: Schema = {"type": "number"}
_INTEGER: Schema = {"type": "integer"}
_FLAG: Schema = {"type": "boolean"}
_JSON_TYPES = ("object", "array", "string", "number", "boolean", "null")
_ANYTHING: Schema = {"anyOf": [{"type": each} for each in _JSON_TYPES]}
_OF_COLUMNS: dict[str, Schema] = {
    "integer": _INTEGER,
    "flag": _FLAG,
    "moment": _MOMENT,
    "document": _ANYTHING,
}
_OF_PARAMETERS: dict[str, Schema] = {
    "text": _TEXT,
    "number": _INTEGER,
    "flag": _FLAG,
    "yesno": _FLAG,
    "duration": {"type": "string", "pattern": DURATION},
}


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
    schema = dict(_OF_PARAMETERS[row.kind])
    if row.choices:
        schema["enum"] = list(row.choices)
    if row.default is not None:
        schema["default"] = row.default
    return schema


def output_schema(tool: Tool) -> Schema:
    """What a model gets; always an object, as the protocol wants it."""
    answer = tool.answer
    one = _answer(answer)
    if answer.many:
        return _object({answer.key: {"type": "array", "items": one}})
    return _object({answer.key: _or_null(one)}) if answer.key else one


def shaped(tool: Tool, answer: Any) -> dict[str, Any]:
    """An answer as the schema says."""
    whole: dict[str, Any] = {tool.answer.key: answer} if tool.answer.key else answer
    return whole


def _answer(answer: Answer) -> Schema:
    return _row(DICTIONARY.kinds[answer.kind]) if answer.kind else _OF_ANSWERS[answer.schema]()


def _row(kind: Kind[Any]) -> Schema:
    return _object({name: _column(column) for name, column in kind.columns.items()})


def _column(column: Column) -> Schema:
    schema = _OF_COLUMNS.get(column.type_name, _TEXT)
    if column.type_name in ("choice", "number choice"):
        values = [each.value for each in column.rule.python_type]  # type: ignore[attr-defined]
        schema = {"enum": values}
    return _or_null(schema) if column.optional else schema


def _object(properties: dict[str, Schema]) -> Schema:
    return {"type": "object", "properties": properties, "required": list(properties)}


def _or_null(schema: Schema) -> Schema:
    return schema if schema is _ANYTHING else {"anyOf": [schema, {"type": "null"}]}


def _claim() -> Schema:
    return _object(
        {
            "task": _row(DICTIONARY.kinds["tasks"]),
            "fence": _INTEGER,
            "lease_until": _or_null(_MOMENT),
            "summaries": {"type": "object", "additionalProperties": _or_null(_TEXT)},
        }
    )


def _thread() -> Schema:
    remark = _row(DICTIONARY.kinds["review_comments"])
    return _object({"first": remark, "replies": {"type": "array", "items": remark}})


def _recall() -> Schema:
    hit = _object(
        {
            "kind": _TEXT,
            "id": _TEXT,
            "agent": _TEXT,
            "project": _or_null(_TEXT),
            "commit_hash": _or_null(_TEXT),
            "at": _MOMENT,
            "score": _NUMBER,
            "why": {"type": "array", "items": _TEXT},
            "lesson": _TEXT,
            "because": _TEXT,
            "is_ours": _FLAG,
            "text": _TEXT,
        }
    )
    hits = {"type": "array", "items": hit}
    return _object(
        {
            "text": _TEXT,
            "project": _or_null(_TEXT),
            "searched": _INTEGER,
            "good": hits,
            "mistakes": hits,
            "unjudged": hits,
        }
    )


def _status() -> Schema:
    names = ("worktree_id", "branch", "path", "agent_id", "agent", "status", "task_id", "task")
    row = _object(
        {
            **{name: _or_null(_TEXT) for name in names},
            "since": _MOMENT,
            "seconds": _NUMBER,
            "lease_until": _or_null(_MOMENT),
            "lease_seconds": _or_null(_NUMBER),
            "waiting_for": {"type": "array", "items": _TEXT},
            "last_entry": _or_null({"type": "object"}),
        }
    )
    space = _object(
        {
            "space": _TEXT,
            "url": _TEXT,
            "worktrees": {"type": "array", "items": {"type": "object"}},
            "rows": {"type": "array", "items": row},
            "tasks": _object(dict.fromkeys(("ready", "held", "waiting"), _INTEGER)),
            "last_entry": _or_null({"type": "object"}),
        }
    )
    return _object({"spaces": {"type": "array", "items": space}})


_OF_ANSWERS = {"claim": _claim, "thread": _thread, "recall": _recall, "status": _status}
