"""What goes over a wire, as JSON Schema: parameters from the table, rows from the dictionary.

What is kept in no dictionary but has a shape that programs rely on is told here too, once for all
who let programs in. Rows stand in an answer as whoever asks wants them: whole, or by reference.
"""

import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from enum import Enum
from typing import Any, Union, get_args, get_origin, get_type_hints

from herdbook.domain.values import INTEGERS
from herdbook.entrypoints.operations.model import Operation, Parameter, code_of
from herdbook.ports.engine.codec import choices_by_value
from herdbook.ports.engine.dictionary import DICTIONARY
from herdbook.ports.engine.kinds import Column, Kind

Schema = dict[str, Any]
Row = Callable[[str], Schema]
"""How a row of a kind, by the kind's name, stands in an answer."""

TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "number"}
INTEGER: Schema = {"type": "integer"}
WHOLE: Schema = {"type": "integer", "minimum": INTEGERS[0], "maximum": INTEGERS[-1]}
FLAG: Schema = {"type": "boolean"}
OBJECT: Schema = {"type": "object"}
NOTHING: Schema = {"type": "null"}
MOMENT: Schema = {"type": "string", "format": "date-time"}
_TYPES = ("object", "array", "string", "number", "boolean", "null")
ANYTHING: Schema = {"anyOf": [{"type": each} for each in _TYPES]}
_OF_PARAMETERS: Mapping[str, Schema] = {
    "number": WHOLE,
    "flag": FLAG,
    "yesno": FLAG,
    "moment": MOMENT,
    "duration": {"type": ["string", "number"], "description": "90s, 5m, 2h, or so many seconds"},
    "json": ANYTHING,
}
_OF_COLUMNS: Mapping[str, Schema] = {
    "integer": INTEGER,
    "flag": FLAG,
    "moment": MOMENT,
    "document": ANYTHING,
    "secret": {"const": "***"},
    "bytes": {**INTEGER, "description": "how many there are"},
}
_PLAIN: Mapping[Any, Schema] = {
    str: TEXT,
    int: INTEGER,
    float: NUMBER,
    bool: FLAG,
    datetime: MOMENT,
    timedelta: {**NUMBER, "description": "seconds"},
    type(None): NOTHING,
    Any: {},
}


def of_parameter(parameter: Parameter) -> Schema:
    """What may be given."""
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
    return an_object({name: _of_column(each) for name, each in kind.columns.items()})


def whole_row(name: str) -> Schema:
    """A row of a kind, as it stands where nothing is referred to."""
    return of_row(DICTIONARY.kinds[name])


def _of_column(column: Column) -> Schema:
    choices = choices_by_value(column)
    schema = {"enum": list(choices)} if choices else _OF_COLUMNS.get(column.type_name, TEXT)
    return or_nothing(schema) if column.optional else schema


def an_object(fields: Mapping[str, Schema]) -> Schema:
    """An object that has all these fields."""
    return {"type": "object", "properties": dict(fields), "required": list(fields)}


def a_list(items: Schema) -> Schema:
    """A list of such things."""
    return {"type": "array", "items": items}


def or_nothing(schema: Schema) -> Schema:
    """This, or null."""
    return schema if schema is ANYTHING else {"anyOf": [schema, NOTHING]}


def of_answer(operation: Operation, row: Row) -> Schema:
    """What an operation answers: from the dictionary where it can be told, else from its code."""
    name = operation.name
    if operation.entity:
        one = row(operation.entity)
        return a_list(one) if operation.words[-1] in ("list", "rm") else one
    if name in _ANSWERS:
        return _ANSWERS[name](row)
    if name in _ROWS:
        return a_list(row(_ROWS[name]))
    if name in _ROW:
        return or_nothing(row(_ROW[name])) if name in _MAYBE else row(_ROW[name])
    hints = get_type_hints(code_of(operation.use_case or operation.code))
    return _of_type(hints["return"], row)


def _claim(row: Row) -> Schema:
    return an_object(
        {
            "task": row("tasks"),
            "fence": INTEGER,
            "lease_until": MOMENT,
            "summaries": {"type": "object", "additionalProperties": or_nothing(TEXT)},
        }
    )


def _recall(_: Row) -> Schema:
    hit = an_object(
        {
            "kind": TEXT,
            "id": TEXT,
            "agent": TEXT,
            "project": or_nothing(TEXT),
            "commit_hash": or_nothing(TEXT),
            "at": MOMENT,
            "score": NUMBER,
            "why": a_list(TEXT),
            "lesson": TEXT,
            "because": TEXT,
            "is_ours": FLAG,
            "text": TEXT,
        }
    )
    hits = dict.fromkeys(("good", "mistakes", "unjudged"), a_list(hit))
    return an_object({"text": TEXT, "project": or_nothing(TEXT), "searched": INTEGER, **hits})


def _status(_: Row) -> Schema:
    names = ("worktree_id", "branch", "path", "agent_id", "agent", "status", "task_id", "task")
    row = an_object(
        {
            **{name: or_nothing(TEXT) for name in names},
            "since": MOMENT,
            "seconds": NUMBER,
            "lease_until": or_nothing(MOMENT),
            "lease_seconds": or_nothing(NUMBER),
            "waiting_for": a_list(TEXT),
            "last_entry": or_nothing(OBJECT),
        }
    )
    space = an_object(
        {
            "space": TEXT,
            "url": TEXT,
            "worktrees": a_list(OBJECT),
            "rows": a_list(row),
            "tasks": an_object(dict.fromkeys(("ready", "held", "waiting"), INTEGER)),
            "last_entry": or_nothing(OBJECT),
        }
    )
    return an_object({"spaces": a_list(space)})


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
_ANSWERS: Mapping[str, Callable[[Row], Schema]] = {
    "task.claim": _claim,
    "recall": _recall,
    "status": _status,
}


def _of_type(hint: Any, row: Row) -> Schema:
    """What a value of a type looks like in JSON; anything where that cannot be told."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        # What is iterated over comes whole, as a list, when it is asked for by a program.
        kept = [each for each in inner if get_origin(each) is not Iterator]
        return (
            _of_type(kept[0], row)
            if len(kept) == 1
            else {"anyOf": [_of_type(each, row) for each in kept]}
        )
    if origin is tuple and inner[1:] != (...,):
        return {"type": "array", "items": [_of_type(each, row) for each in inner]}
    if origin in (list, set, frozenset, tuple, Sequence, Iterator):
        return a_list(_of_type(inner[0], row))
    if origin in (dict, Mapping):
        return {"type": "object", "additionalProperties": _of_type(inner[1], row)}
    if hint in _PLAIN:
        return dict(_PLAIN[hint])
    return _of_class(hint, row) if isinstance(hint, type) else {}


def _of_class(hint: type, row: Row) -> Schema:
    for kind in DICTIONARY:
        if kind.entity is hint:
            return row(kind.name)
    if issubclass(hint, Enum):
        return {"enum": [each.value for each in hint]}
    if hasattr(hint, "_fields"):
        fields = get_type_hints(hint).items()
        return an_object({name: _of_type(each, row) for name, each in fields})
    return {}
