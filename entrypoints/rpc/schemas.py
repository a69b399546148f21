"""What goes over the wire, as JSON Schema: parameters from the table, answers from the types."""

import types
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from enum import Enum
from typing import Any, Union, get_args, get_origin, get_type_hints

from herdbook.entrypoints.operation import Operation, Parameter
from herdbook.entrypoints.rpc.methods import LARGEST, code_of
from herdbook.ports.dictionary import DICTIONARY
from herdbook.ports.kinds import Column, Kind
from herdbook.ports.wire import members

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "integer"}
WHOLE: Schema = {"type": "integer", "minimum": -LARGEST - 1, "maximum": LARGEST}
FLAG: Schema = {"type": "boolean"}
OBJECT: Schema = {"type": "object"}
NOTHING: Schema = {"type": "null"}
MOMENT: Schema = {"type": "string", "format": "date-time"}
_OF_PARAMETERS: Mapping[str, Schema] = {
    "number": WHOLE,
    "flag": FLAG,
    "yesno": FLAG,
    "moment": MOMENT,
    "duration": {"type": ["string", "number"], "description": "90s, 5m, 2h, or so many seconds"},
    "json": {"description": "any JSON"},
}
_OF_COLUMNS: Mapping[str, Schema] = {
    "integer": NUMBER,
    "flag": FLAG,
    "moment": MOMENT,
    "document": {"description": "any JSON"},
    "secret": {"const": "***"},
}
_PLAIN: Mapping[Any, Schema] = {
    str: TEXT,
    int: NUMBER,
    float: {"type": "number"},
    bool: FLAG,
    datetime: MOMENT,
    timedelta: {"type": "number", "description": "seconds"},
    type(None): NOTHING,
    Any: {},
}


def of_parameter(parameter: Parameter) -> Schema:
    """What a client may give."""
    schema = dict(_OF_PARAMETERS.get(parameter.kind, TEXT))
    if parameter.choices:
        schema["enum"] = list(parameter.choices)
    if parameter.name == "limit":
        schema["minimum"] = 1
    if parameter.default is not None:
        schema["default"] = parameter.default
    return {"type": "array", "items": schema, "minItems": 1} if parameter.many else schema


def of_row(kind: Kind[Any]) -> Schema:
    """A row with all its fields."""
    return {
        "title": kind.entity.__name__,
        "type": "object",
        "properties": {name: _of_column(each) for name, each in kind.columns.items()},
        "required": list(kind.columns),
    }


def _of_column(column: Column) -> Schema:
    schema = dict(_OF_COLUMNS.get(column.type_name, TEXT))
    if choices := members(column):
        schema = {"enum": list(choices)}
    return {"anyOf": [schema, NOTHING]} if column.optional else schema


def reference(kind: Kind[Any]) -> Schema:
    """A row, by the name of its kind."""
    return {"$ref": f"#/components/schemas/{kind.entity.__name__}"}


def rows(name: str) -> Schema:
    """Rows of a kind."""
    return {"type": "array", "items": reference(DICTIONARY.kinds[name])}


def _claim() -> Schema:
    return {
        "type": "object",
        "properties": {
            "task": reference(DICTIONARY.kinds["tasks"]),
            "fence": NUMBER,
            "lease_until": MOMENT,
            "summaries": {"type": "object", "additionalProperties": TEXT},
        },
        "required": ["task", "fence", "lease_until", "summaries"],
    }


def of_answer(operation: Operation) -> Schema:
    """What an operation answers: from the dictionary where it can be told, else from its code."""
    name, verb = operation.name, operation.words[-1]
    if operation.entity:
        many = verb in ("list", "rm")
        return rows(operation.entity) if many else reference(DICTIONARY.kinds[operation.entity])
    if name == "task.claim":
        return _claim()
    if name in _ROWS:
        return rows(_ROWS[name])
    if name in _ROW:
        row = reference(DICTIONARY.kinds[_ROW[name]])
        return {"anyOf": [row, NOTHING]} if name in _MAYBE else row
    hints = get_type_hints(code_of(operation.use_case or operation.code))
    return of_type(hints["return"])


_ROW = {
    "agent.add": "agents",
    "task.heartbeat": "openings",
    "task.done": "tasks",
    "task.fail": "tasks",
    "task.release": "tasks",
    "conversation.add": "conversations",
    "conversation.listen": "conversations",
    "activity.add": "activities",
}
_ROWS = {
    "agent.waiting": "agents",
    "agent.crashed": "agents",
    "log.list": "log_chunks",
    "journal.list": "journal",
    "journal.since": "journal",
    "activity.list": "activities",
    "retro.list": "retrospectives",
}
_MAYBE = frozenset({"conversation.listen"})


def of_type(hint: Any) -> Schema:
    """What a value of a type looks like in JSON; anything where that cannot be told."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        # What is iterated over comes whole, as a list, when it is asked for by a program.
        kept = [each for each in inner if get_origin(each) is not Iterator]
        return of_type(kept[0]) if len(kept) == 1 else {"anyOf": [of_type(each) for each in kept]}
    if origin is tuple and inner[1:] != (...,):
        return {"type": "array", "items": [of_type(each) for each in inner]}
    if origin in (list, set, frozenset, tuple, Sequence, Iterator):
        return {"type": "array", "items": of_type(inner[0])}
    if origin in (dict, Mapping):
        return {"type": "object", "additionalProperties": of_type(inner[1])}
    if hint in _PLAIN:
        return dict(_PLAIN[hint])
    return _of_class(hint) if isinstance(hint, type) else {}


def _of_class(hint: type) -> Schema:
    for kind in DICTIONARY:
        if kind.entity is hint:
            return reference(kind)
    if issubclass(hint, Enum):
        return {"enum": [each.value for each in hint]}
    if hasattr(hint, "_fields"):
        fields = {name: of_type(each) for name, each in get_type_hints(hint).items()}
        return {"type": "object", "properties": fields, "required": list(fields)}
    return {}
